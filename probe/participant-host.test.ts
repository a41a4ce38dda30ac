import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { encodeFrame } from "../shared/wire/codec.ts";
import type { Frame } from "../shared/wire/frames.ts";
import type { SocketListener } from "../client/ports.ts";
import type { Finding } from "./findings.ts";
import { ParticipantHost } from "./participant-host.ts";

const LIMITS = {
  pingIntervalMs: 60_000,
  silenceMsMax: 120_000,
  frameBytesMax: 1e6,
  editBytesMax: 1e6,
  editBurst: 9,
  editsPerSecond: 9,
  bytesBurst: 1e6,
  bytesPerSecond: 1e6,
  presenceBurst: 9,
  presencePerSecond: 9,
  presenceBytesMax: 1e4,
  presenceFieldsMax: 9,
  controlBurst: 9,
  controlsPerSecond: 9,
};
const WELCOME: Frame = { type: "welcome", version: 1, connection: "c", limits: LIMITS, tokenExpiresInMs: 3_600_000 };

/** A participant of two gateways, which behave as the test sets them. */
function participant() {
  const clock = new FakeClock();
  const lines: { readonly url: string; readonly listener: SocketListener }[] = [];
  const findings: Finding[] = [];
  const silent = () => {};
  const world = {
    clock: {
      now: () => clock.now(),
      after: (ms: number, run: () => void) => clock.after(ms, run),
      soon: (run: () => void) => void clock.after(0, run),
    },
    chance: { unit: () => 0.5, clientKey: () => "k".repeat(22) as never },
    openSocket: (url: string, listener: SocketListener) => {
      lines.push({ url, listener });
      return { send: silent, close: silent };
    },
    fetchSnapshot: () => Promise.reject(new Error("none is asked for")),
  };
  const listener = { came: silent, went: silent, delivered: silent, snapshot: silent, rolledBack: silent, pointed: silent };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const options = {
    room: "probe-small-1",
    gateways: ["ws://one", "ws://two"],
    first: 0,
    token: () => Promise.resolve("t.o.k"),
    seesPresence: true,
  };
  const host = new ParticipantHost(options, listener, { clock, world, log, record: (finding) => findings.push(finding) });
  const hosts = () => lines.map(({ url }) => new URL(url).hostname);
  return { clock, lines, findings, host, hosts };
}

test("[PPA1] when a gateway shuts down the next connection is opened at another, while the first is open", async () => {
  const { clock, lines, findings, host, hosts } = participant();
  await clock.advance(10);
  lines[0]!.listener.opened();
  lines[0]!.listener.received(encodeFrame(WELCOME));
  lines[0]!.listener.received(encodeFrame({ type: "going-away", reconnectAfterMs: 100 }));
  await clock.advance(1_000);
  expect(hosts()).toEqual(["one", "two"]);
  expect(findings.map(({ kind }) => kind)).toEqual(["first-message"]);
  host.leave();
});

test("[PPA2] a gateway that does not answer counts as unreachable, and the next is tried", async () => {
  const { clock, findings, host, hosts } = participant();
  await clock.advance(60_000);
  expect(hosts().slice(0, 3)).toEqual(["one", "two", "one"]);
  expect(findings[0]).toEqual({ kind: "connect-failed", cause: "unreachable" });
  host.leave();
});

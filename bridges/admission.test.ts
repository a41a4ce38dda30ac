import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomId, TenantId } from "../shared/ids.ts";
import type { ClientAddress } from "../shared/limits/client-address.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import * as encoding from "lib0/encoding";
import { readSettings } from "../shared/settings/settings.ts";
import { type AdmissionDeps, YAdmission } from "./admission.ts";
import { yWebsocketSettings } from "./config.ts";
import { EarlyMessagesBudget } from "./held-messages.ts";
import { toDocument } from "./hocuspocus-protocol.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { Places } from "./places.ts";
import type { YSocket, YSocketListener, YWebSocket } from "./ports.ts";
import { type ReaderOwner, UnreadData } from "./unread-data.ts";

const place = "203.0.113.9" as ClientAddress;
const owner: ReaderOwner = { tenant: "acme" as TenantId, user: "ann" };
const config = readSettings(yWebsocketSettings, { flags: {}, env: {} });
const origin = { address: place, place };
const socket: YWebSocket = { send: () => {}, close: () => {}, cut: () => {}, waitingBytes: 0 };
const tokenFor = (document: string): Uint8Array =>
  toDocument(
    document,
    encoding.encode((output) => {
      for (const number of [2, 0]) encoding.writeVarUint(output, number);
      for (const text of ["a token", "4.8.0"]) encoding.writeVarString(output, text);
    }),
  );

type ReceiveMessage = (message: Uint8Array, client: YSocket) => void;
const newClient =
  (receiveMessage: ReceiveMessage = () => {}): AdmissionDeps["newClient"] =>
  (_, client) => ({
    receiveBytes: () => true,
    receiveMessage: (message) => receiveMessage(message, client),
    receiveClosed: (onLeft) => onLeft(),
  });

/** With the default settings. */
function admissionOf(parts: Pick<AdmissionDeps, "newClient"> & Partial<AdmissionDeps>, clock = new FakeClock()): YAdmission {
  return new YAdmission({
    places: new Places(config),
    metrics: yWebsocketMetrics(new Registry()),
    unfinishedBytesMax: config.yUnfinishedBytesMax,
    unread: new UnreadData(1_000_000, () => {}),
    hocuspocus: { ...config, budget: new EarlyMessagesBudget(config.yHeldBytesMax), clock },
    ...parts,
  });
}

test("[YAD1] a Hocuspocus socket that closed before its token was accepted gives back its place for the address only once", () => {
  const places = new Places({ yClientsMax: 100, yClientsPerAddressMax: 4 });
  const accepted: ((owner: ReaderOwner) => void)[] = [];
  const left: (() => void)[] = [];
  const admission = admissionOf({
    places,
    newClient: (_, __, ___, receiveAccepted) => {
      accepted.push(receiveAccepted);
      return { receiveBytes: () => true, receiveMessage: () => {}, receiveClosed: (onLeft) => void left.push(onLeft) };
    },
  });
  for (let client = 0; client < 2; client++) admission.enter({ ...origin, room: "a" as RoomId, token: "" }, socket);
  const listener = admission.enterHocuspocus(origin, socket);
  listener.receiveMessage(tokenFor("plan"));
  expect(admission.mayEnter(origin)).toBe("address");
  listener.receiveClosed();
  accepted.at(-1)!(owner); // The document of the closed socket still saves an edit, and joins its room for this.
  left.at(-1)!();
  for (let client = 0; client < 2; client++) {
    expect(admission.mayEnter(origin)).toBe(undefined);
    admission.enter({ ...origin, room: "a" as RoomId, token: "" }, socket);
  }
  expect(admission.mayEnter(origin), "four clients without an accepted token are connected").toBe("address");
  expect(places.taken).toBe(4);
});

test("[YAD2] with the default settings a socket opens as many documents at once as it may have, before any token is accepted", () => {
  const [opened, closed]: [string[], number[]] = [[], []];
  const admission = admissionOf({
    newClient: (seat, ...more) => {
      opened.push(seat.room);
      return newClient()(seat, ...more);
    },
  });
  const listener = admission.enterHocuspocus(origin, { ...socket, close: (code) => void closed.push(code) });
  for (let document = 0; document < config.yDocumentsMax; document++) listener.receiveMessage(tokenFor(`plan-${document}`));
  expect([opened.length, closed]).toEqual([config.yDocumentsMax, []]);
});

test("[YAD3] a socket that sends too many messages or pings is cut, and what it sends then is not read", async () => {
  const clock = new FakeClock();
  const metrics = yWebsocketMetrics(new Registry());
  const cuts: number[] = [];
  let receivedCount = 0;
  const admission = admissionOf({ metrics, newClient: newClient(() => void receivedCount++) }, clock);
  const listener = admission.enter({ ...origin, room: "a" as RoomId, token: "" }, { ...socket, cut: (code) => void cuts.push(code) });
  for (let message = 0; message < 65_535; message++) listener.receiveMessage(Uint8Array.of(3));
  listener.receiveControlFrame(6);
  clock.turn(1_000);
  for (let message = 0; message < 6_144; message++) listener.receiveMessage(Uint8Array.of(3));
  expect([receivedCount, cuts]).toEqual([71_679, []]);
  listener.receiveControlFrame(6);
  listener.receiveMessage(Uint8Array.of(3));
  expect([receivedCount, cuts]).toEqual([71_679, [4529]]);
  expect((await metrics.closes.get()).values).toMatchObject([{ labels: { code: "4529" }, value: 1 }]);
});

test("[YAD5] frames of one byte count like messages, and long messages in ordinary frames do not", () => {
  const received = (send: (listener: YSocketListener) => void): { readonly count: number; readonly cuts: readonly number[] } => {
    const cuts: number[] = [];
    let count = 0;
    const admission = admissionOf({ newClient: newClient(() => void count++) });
    send(admission.enter({ ...origin, room: "a" as RoomId, token: "" }, { ...socket, cut: (code) => void cuts.push(code) }));
    return { count, cuts };
  };
  const torn = received((listener) => {
    for (let message = 0; message < 1_000; message++) {
      listener.receiveBytes(7_000);
      listener.receiveMessage(new Uint8Array(1_000));
    }
  });
  expect(torn.cuts).toEqual([4529]);
  expect(torn.count).toBeLessThan(100);
  const small = received((listener) => {
    for (let read = 0; read < 8; read++) {
      listener.receiveBytes(8_000 * 7);
      for (let message = 0; message < 8_000; message++) listener.receiveMessage(Uint8Array.of(3));
    }
  });
  expect(small, "many messages in one read").toEqual({ count: 64_000, cuts: [] });
  const pings = received((listener) => {
    for (let ping = 0; ping < 30_000; ping++) {
      listener.receiveBytes(6);
      listener.receiveControlFrame(6);
      listener.receiveBytes(7);
      listener.receiveMessage(Uint8Array.of(3));
    }
  });
  expect(pings).toEqual({ count: 30_000, cuts: [] });
  const longMessage = new Uint8Array(512 * 65_536);
  const long = received((listener) => {
    for (let message = 0; message < 20; message++) {
      for (let frame = 0; frame < 512; frame++) listener.receiveBytes(65_536 + 14);
      listener.receiveMessage(longMessage);
    }
  });
  expect(long, "as browsers send long messages").toEqual({ count: 20, cuts: [] });
});

test("[YAD4] a refused client has its refusal at once and its close later, so that it does not connect again at once", () => {
  const clock = new FakeClock();
  const admission = admissionOf({ newClient: newClient(([code], client) => client.close(code === 0 ? 4401 : 1013, "refused")) }, clock);
  const [sent, closed]: [Uint8Array[], number[]] = [[], []];
  const client: YWebSocket = { ...socket, send: (bytes) => void sent.push(bytes), close: (code) => void closed.push(code) };
  const seat = { ...origin, room: "a" as RoomId, token: "" };
  admission.enter(seat, client).receiveMessage(Uint8Array.of(1));
  expect(closed, "other closes are not delayed").toEqual([1013]);
  admission.enter(seat, client).receiveMessage(Uint8Array.of(0));
  admission.enterHocuspocus({ ...origin, remedy: "do this instead" }, client).receiveMessage(Uint8Array.of(0, 0, 1, 0));
  expect([sent.length, closed]).toEqual([1, [1013]]);
  clock.turn(3_000);
  expect(closed).toEqual([1013, 4401, 4401]);
});

test("[YUR2] unread data counts for the user whose token was accepted, with the messages of all documents", () => {
  const cut: string[] = [];
  const unread = new UnreadData<YWebSocket>(1_000, (heaviest) => heaviest.cut(1013, ""));
  const documents: { readonly socket: YSocket; readonly accept: (owner: ReaderOwner) => void }[] = [];
  const admission = admissionOf({
    unread,
    newClient: (seat, client, dialect, accept) => {
      documents.push({ socket: client, accept });
      return newClient()(seat, client, dialect, accept);
    },
  });
  const listeners = ["eve 1", "eve 2", "ann"].map((name) => {
    let waitingBytes = 0;
    const reader: YWebSocket = {
      send: (bytes) => void (waitingBytes += bytes.byteLength),
      close: () => {},
      cut: () => void cut.push(name),
      get waitingBytes() {
        return waitingBytes;
      },
    };
    const listener = admission.enterHocuspocus(origin, reader);
    listener.receiveMessage(tokenFor("plan"));
    documents.at(-1)!.accept({ ...owner, user: name.slice(0, 3) });
    return listener;
  });
  for (const { socket: document } of documents) document.send(new Uint8Array(300)); // With the name of the document 305.
  expect(cut).toEqual([]);
  documents[2]!.socket.send(new Uint8Array(200));
  expect([cut, unread.bytes]).toEqual([["eve 1"], 305 + 305 + 205]);
  listeners[1]!.receiveClosed();
  expect(unread.bytes).toBe(305 + 205);
});

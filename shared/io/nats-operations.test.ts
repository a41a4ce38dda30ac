import { expect, test } from "vitest";

import type { OperationsReport } from "../bus/operations-events.ts";
import { subjectsOf } from "../bus/subjects.ts";
import type { Millis, RoomKey } from "../ids.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { SILENT_LOG } from "../testing/silent-log.ts";
import type { NatsConnection } from "./nats.ts";
import { natsOperations, reportOutages } from "./nats-operations.ts";

type Status = ReturnType<NatsConnection["status"]> extends AsyncIterable<infer One> ? One : never;

/** `answersAt`: when NATS answers a ping of a connection that was not lost. Undefined: never. */
async function outagesOf(statuses: readonly (readonly [ms: number, status: Status])[], answersAt?: number): Promise<OperationsReport[]> {
  let now = 0;
  const flush = async (): Promise<void> => {
    if (answersAt === undefined) throw new Error("connection disconnected");
    now = answersAt;
  };
  async function* all(): AsyncIterable<Status> {
    for (const [ms, status] of statuses) {
      now = ms;
      yield status;
    }
  }
  const reports: OperationsReport[] = [];
  await reportOutages({ status: all, flush }, { report: (report) => void reports.push(report) }, { now: () => now as Millis });
  return reports;
}

const ping = (pendingPings: number): Status => ({ type: "ping", pendingPings });
const [stale, disconnect, reconnect]: Status[] = [
  { type: "staleConnection" },
  { type: "disconnect", server: "a" },
  { type: "reconnect", server: "a" },
];

test("[OPS7] an outage begins with the lost connection, and for a stuck server with the first ping without an answer", async () => {
  expect(
    await outagesOf([
      [5_000, ping(1)],
      [9_000, disconnect!],
      [9_400, disconnect!],
      [10_000, reconnect!],
    ]),
  ).toEqual([{ kind: "nats_lost", downMs: 1_000 }]);
  const stuck = [
    [5_000, ping(1)],
    [10_000, ping(1)],
    [15_000, ping(2)],
    [20_000, ping(3)],
    [20_000, stale!],
    [20_000, disconnect!],
  ] as const;
  expect(await outagesOf([...stuck, [28_000, reconnect!]])).toEqual([{ kind: "nats_lost", downMs: 18_000 }]);
  expect(await outagesOf([...stuck, [28_000, reconnect!], [30_000, disconnect!], [31_000, reconnect!]])).toHaveLength(2);
});

test("[OPS14] a server that answers again before the connection is lost was out of reach since the first ping without an answer", async () => {
  const silent = [
    [5_000, ping(1)],
    [10_000, ping(1)],
    [15_000, ping(2)],
  ] as const;
  expect(await outagesOf(silent, 17_000)).toEqual([{ kind: "nats_lost", downMs: 7_000 }]);
  expect(await outagesOf(silent), "the connection is lost, and not back yet").toEqual([]);
  expect(await outagesOf(silent.slice(0, 2), 17_000), "all pings were answered in time").toEqual([]);
});

test("[OPS15] a tenant that opens rooms in a loop fills neither the log nor the stream of events, and all are counted", () => {
  let [published, lines, counted] = [0, 0, 0];
  const nats = { publish: () => void (published += 1), isClosed: () => false } as unknown as NatsConnection;
  const log = { ...SILENT_LOG, info: () => void (lines += 1) };
  const operations = natsOperations(nats, subjectsOf("test"), "rs-1", { clock: new FakeClock(), log, count: () => void (counted += 1) });
  for (let room = 0; room < 1_000; room++) operations.report({ kind: "room_claimed", room: `acme.r${room}` as RoomKey, epoch: 1 });
  expect([published, lines, counted]).toEqual([100, 100, 1_000]);
});

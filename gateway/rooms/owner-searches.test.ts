import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { ClaimRequest, LocateReply } from "../../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { gatewayMetrics } from "../metrics.ts";
import { OwnerSearches } from "./owner-searches-host.ts";

const server = "rs-1" as ServerId;
const room = (index: number) => `acme.room${index}` as RoomKey;
/** The part of placement that these tests do not use. */
const UNUSED = { candidates: () => [], isGone: () => Promise.resolve(false), onServerLost: () => {} };
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("[OWS1] a limited number of searches is active, however many rooms search, and each has its turn", async () => {
  const answers: ((reply: LocateReply) => void)[] = [];
  const [answered, registry] = [[] as RoomKey[], new Registry()];
  const placement = {
    locate: () => new Promise<LocateReply>((resolve) => answers.push(resolve)),
    claim: () => Promise.resolve(undefined),
    ...UNUSED,
  };
  const searches = new OwnerSearches(
    placement,
    {
      epochOf: (key) => (key === room(7) ? undefined : (0 as Epoch)),
      presenceEpochOf: () => undefined,
      receiveOutcome: (key) => void answered.push(key),
    },
    { searchesMax: 3 },
    { log: SILENT_LOG, metrics: gatewayMetrics(registry) },
  );
  for (let index = 0; index < 10; index++) searches.carryOut(room(index), { kind: "locate", suspects: [] });
  expect(answers).toHaveLength(3);
  expect(await registry.getSingleMetricAsString("coroom_gateway_owner_searches_waiting")).toContain(" 7");
  searches.carryOut(room(9), { kind: "claim", server, suspect: undefined });
  let most = 0;
  for (let next = 0; answered.length < 9; next++) {
    most = Math.max(most, answers.length - next);
    answers[next]?.({ kind: "server", server });
    await settled();
  }
  expect(most).toBe(3);
  expect(answered.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 8, 9].map(room)); // Room 7 has no follower any more.
  expect(answers).toHaveLength(8); // Room 9 has a newer step.
});

test("[OWS2] a server that is asked to take a room learns the highest epoch that its edits or its presence know", async () => {
  const requests: ClaimRequest[] = [];
  const placement = {
    locate: () => Promise.resolve(undefined),
    claim: (_: ServerId, request: ClaimRequest) => (requests.push(request), Promise.resolve(undefined)),
    ...UNUSED,
  };
  const searches = new OwnerSearches(
    placement,
    {
      epochOf: (key) => (key === room(1) ? 7 : 0) as Epoch,
      presenceEpochOf: (key) => (key === room(1) ? 6 : key === room(3) ? 8 : undefined) as Epoch | undefined,
      receiveOutcome: () => {},
    },
    { searchesMax: 3 },
    { log: SILENT_LOG, metrics: gatewayMetrics(new Registry()) },
  );
  for (const index of [1, 2, 3]) searches.carryOut(room(index), { kind: "claim", server, suspect: undefined });
  await settled();
  expect(requests).toEqual([{ room: room(1), above: 7 }, { room: room(2) }, { room: room(3), above: 8 }]);
});

test("[OWS3] the many rooms of one tenant delay no search for the first room of another", async () => {
  const asked: RoomKey[] = [];
  const placement = {
    locate: ({ room: searching }: { room: RoomKey }) => (asked.push(searching), new Promise<LocateReply>(() => {})),
    claim: () => Promise.resolve(undefined),
    ...UNUSED,
  };
  const searches = new OwnerSearches(
    placement,
    { epochOf: () => 0 as Epoch, presenceEpochOf: () => undefined, receiveOutcome: () => {} },
    { searchesMax: 8 },
    { log: SILENT_LOG, metrics: gatewayMetrics(new Registry()) },
  );
  for (let index = 0; index < 1_000; index++) searches.carryOut(room(index), { kind: "locate", suspects: [] });
  expect(asked).toHaveLength(6); // The others are for tenants that search for less.
  searches.carryOut("other.plan" as RoomKey, { kind: "locate", suspects: [] });
  expect(asked.at(-1)).toBe("other.plan");
});

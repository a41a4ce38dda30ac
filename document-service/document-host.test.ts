import { expect, test } from "vitest";

import type { RoomKey } from "../shared/ids.ts";
import { DocumentHost } from "./document-host.ts";
import { historyRoutes } from "./io/history-routes.ts";
import type { RoomQuestion } from "./io/http.ts";
import { BROKEN, OnePartition } from "./testing/one-partition.ts";
import { recordsOf, ROOM } from "./testing/one-room.ts";

function historyQuestion(room: RoomKey): RoomQuestion {
  return {
    method: "GET",
    segments: [],
    query: new URLSearchParams("seq=1"),
    tenant: "acme",
    header: () => "",
    body: () => Promise.resolve(new TextEncoder().encode('{"name":"one"}')),
    room,
    parameters: ["one"],
    signal: new AbortController().signal,
  };
}

test('[DHS1] a request for the history of a room whose checkpoint cannot be read is answered "ask again" in time', async () => {
  const partition = new OnePartition();
  const { ports, options, deps, clock } = partition;
  const host = new DocumentHost(ports, options, deps);
  await partition.until(() => host.isServing);
  const question = historyQuestion(BROKEN);
  const statuses: number[] = [];
  const routes = historyRoutes(host, deps.log);
  for (const { answer } of routes) void answer(question).then(({ status }) => statuses.push(status));
  await clock.advance(options.documentsAnswerMsMax);
  expect(statuses).toEqual(routes.map(() => 503));
});

test("[DHS2] a merge that waits for a thread keeps no request for history waiting for long, and none that follow", async () => {
  const records = recordsOf("a");
  const partition = new OnePartition(...records);
  const { options, deps, clock, stores } = partition;
  stores.log.push(...records);
  const ports = { ...partition.ports, merging: { merge: () => new Promise<never>(() => {}) } };
  const host = new DocumentHost(ports, options, deps);
  await partition.until(() => host.isServing);
  const routes = new Map(historyRoutes(host, deps.log).map(({ method, place, answer }) => [`${method} ${place}`, answer]));
  const statuses: number[] = [];
  const ask = (route: string) => void routes.get(route)!(historyQuestion(ROOM)).then(({ status }) => statuses.push(status));
  for (let request = 0; request < 6; request += 1) ask("POST revert");
  ask("POST versions");
  ask("GET past");
  await clock.advance(options.documentsAnswerMsMax);
  expect(statuses.toSorted(), "the request for a name has its turn now").toEqual([200, ...Array.from({ length: 6 }, () => 503)]);
  await clock.advance(options.documentsAnswerMsMax);
  expect(statuses.at(-1)).toBe(503);
});

import { expect, test } from "vitest";

import { DocumentHost } from "./document-host.ts";
import { historyRoutes } from "./io/history-routes.ts";
import type { RoomQuestion } from "./io/http.ts";
import { BROKEN, OnePartition } from "./testing/one-partition.ts";

test('[DHS1] a request for the history of a room whose checkpoint cannot be read is answered "ask again" in time', async () => {
  const partition = new OnePartition();
  const { ports, options, deps, clock } = partition;
  const host = new DocumentHost(ports, options, deps);
  await partition.until(() => host.isServing);
  const question: RoomQuestion = {
    method: "GET",
    segments: [],
    query: new URLSearchParams("seq=1"),
    tenant: "acme",
    header: () => "",
    body: () => Promise.resolve(new TextEncoder().encode('{"name":"one"}')),
    room: BROKEN,
    parameters: ["one"],
    signal: new AbortController().signal,
  };
  const statuses: number[] = [];
  const routes = historyRoutes(host, deps.log);
  for (const { answer } of routes) void answer(question).then(({ status }) => statuses.push(status));
  await clock.advance(options.documentsAnswerMsMax);
  expect(statuses).toEqual(routes.map(() => 503));
});

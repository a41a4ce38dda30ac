import { expect, test } from "vitest";

import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import type { InternalAnswer } from "../../shared/io/internal-http.ts";
import { SILENT } from "../../shared/testing/silent-log.ts";
import type { Past, PastHost } from "../past/past-host.ts";
import { historyRoutes } from "./history-routes.ts";

const FOUND: Past = { kind: "state", state: Uint8Array.of(1), position: { epoch: 1 as Epoch, seq: 5 as Seq } };

test("[HRR1] of the past so much is read at once, the others wait, and nothing is read for whoever left meanwhile", async () => {
  const held: (() => void)[] = [];
  const past = { readAt: () => new Promise<Past>((resolve) => held.push(() => resolve(FOUND))) } as unknown as PastHost;
  const route = historyRoutes({ past: () => Promise.resolve(past) }, SILENT).find(({ place }) => place === "past")!;
  const ask = (signal: AbortSignal): Promise<InternalAnswer> =>
    route.answer({
      method: "GET",
      segments: [],
      query: new URLSearchParams("seq=5"),
      tenant: "acme",
      header: () => "",
      body: () => Promise.resolve(undefined),
      room: "acme.notes" as RoomKey,
      parameters: [],
      signal,
    });
  const [stays, leaves] = [new AbortController(), new AbortController()];
  const answers = [...Array.from({ length: 9 }, () => stays), leaves, stays].map(({ signal }) => ask(signal));
  await new Promise(setImmediate);
  expect(held).toHaveLength(8);
  leaves.abort();
  for (let answered = 0; answered < 10; answered++) {
    held[answered]!();
    await new Promise(setImmediate);
  }
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([...Array.from({ length: 9 }, () => 200), 503, 200]);
  expect(held).toHaveLength(10);
});

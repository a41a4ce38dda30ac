import { expect, test } from "vitest";

import type { Epoch, RoomKey, Seq } from "../../shared/ids.ts";
import type { InternalResponse } from "../../shared/io/internal-http.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { HistoryState } from "../history/history-reads.ts";
import type { HistoryReadsHost } from "../history/history-reads-host.ts";
import { historyRoutes } from "./history-routes.ts";

const FOUND: HistoryState = { kind: "state", state: Uint8Array.of(1), position: { epoch: 1 as Epoch, seq: 5 as Seq } };

test("[HRR1] a limited number of history reads run at once, the others wait, and a read whose caller has left is not started", async () => {
  const held: (() => void)[] = [];
  const history = { readAt: () => new Promise<HistoryState>((resolve) => held.push(() => resolve(FOUND))) } as unknown as HistoryReadsHost;
  const route = historyRoutes({ historyReads: () => Promise.resolve(history) }, SILENT_LOG).find(({ place }) => place === "past")!;
  const ask = (signal: AbortSignal): Promise<InternalResponse> =>
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

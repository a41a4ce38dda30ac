import { expect, test } from "vitest";

import type { Epoch, Millis, Seq } from "../../shared/ids.ts";
import { ChangeNews } from "./change-news.ts";

const at = (ms: number) => ms as Millis;
const position = (seq: number) => ({ epoch: 2 as Epoch, seq: seq as Seq });
const start = () => new ChangeNews({ webhookQuietMs: 100, webhookChangeMsMax: 1_000 });

test("[CHN1] what was written in one go is told once, after it has been quiet for a while", () => {
  const news = start();
  for (const [ms, seq] of [
    [0, 1],
    [50, 3],
    [140, 4],
  ] as const)
    news.receiveEdits(position(seq), seq === 3 ? 2 : 1, at(ms));
  expect([news.isDue(at(239)), news.isDue(at(240))]).toEqual([false, true]);
  expect(news.take()).toEqual({ epoch: 2, seq: 4, edits: 4 });
  expect([news.isPending, news.isDue(at(10_000)), news.take()]).toEqual([false, false, undefined]);
});

test("[CHN2] a room that is never quiet is told of all the same", () => {
  const news = start();
  for (let ms = 0; ms <= 950; ms += 50) news.receiveEdits(position(ms + 1), 1, at(ms));
  expect([news.isDue(at(999)), news.isDue(at(1_000))]).toEqual([false, true]);
});

test("[CHN3] what could not be told is told with what came since", () => {
  const news = start();
  news.receiveEdits(position(1), 1, at(0));
  const taken = news.take()!;
  news.receiveEdits(position(5), 4, at(10));
  news.putBack(taken, at(20));
  expect(news.take()).toEqual({ epoch: 2, seq: 5, edits: 5 });
  news.putBack(taken, at(30));
  expect(news.take()).toEqual(taken);
});

import { expect, test } from "vitest";

import type { ClientId, Epoch, UserId } from "../../shared/ids.ts";
import { decodeNews, encodeNews, type Participant, type PresenceNews } from "../../shared/wire/presence.ts";
import { PresenceView } from "./presence-view.ts";

const first = 1 as Epoch;
const person = (number: number, name: string): Participant => ({
  number,
  client: name.padEnd(16, "1") as ClientId,
  user: name as UserId,
  name,
  canWrite: true,
  spectator: false,
});
const field = (name: string, text: string) => ({ name, value: new TextEncoder().encode(text) });
const news = (parts: Partial<PresenceNews>): Uint8Array => encodeNews({ whole: false, present: [], gone: [], states: [], ...parts });
const [ann, bob] = [person(1, "ann"), person(2, "bob")];

/** Ann is there, and draws. */
function known(): PresenceView {
  const view = new PresenceView();
  view.receiveEpoch(first);
  view.receiveWhole({ number: 4, news: news({ whole: true, present: [ann], states: [{ number: 1, fields: [field("tool", "pen")] }] }) });
  return view;
}
const namesIn = (view: PresenceView) => decodeNews(view.whole)!.present.map(({ name }) => name);

test("[PRG30] news that follow go on as the owner's own bytes", () => {
  const view = known();
  const bytes = news({ present: [bob] });
  expect(view.receiveNews({ number: 5, news: bytes })).toMatchObject([{ bytes }]);
  expect([namesIn(view), view.isBehind]).toEqual([["ann", "bob"], false]);
  expect(view.receiveNews({ number: 5, news: bytes })).toEqual([]);
});

test("[PRG31] news after a gap wait for the whole, and are told after it", () => {
  const view = known();
  expect(view.receiveNews({ number: 6, news: news({ states: [{ number: 2, fields: [field("tool", "brush")] }] }) })).toEqual([]);
  expect(view.isBehind).toBe(true);
  const told = view.receiveWhole({ number: 5, news: news({ whole: true, present: [ann, bob] }) });
  expect(told.map((tidings) => tidings.news)).toMatchObject([
    { whole: false, present: [bob], states: [{ number: 1, fields: [{ name: "tool", value: new Uint8Array(0) }] }] },
    { states: [{ number: 2 }] },
  ]);
  expect([view.shown(bob.client, "tool"), view.isBehind]).toEqual([field("tool", "brush").value, false]);
});

test("[PRG32] a late gap-filler needs no whole", () => {
  const view = known();
  view.receiveNews({ number: 6, news: news({ gone: [1] }) });
  expect(view.receiveNews({ number: 5, news: news({ present: [bob] }) })).toHaveLength(2);
  expect(namesIn(view)).toEqual(["bob"]);
});

test("[PRG33] a head beyond the last news shows that some were lost", () => {
  const view = known();
  view.receiveHead(4);
  expect(view.isBehind).toBe(false);
  view.receiveHead(5);
  expect(view.isBehind).toBe(true);
});

test("[PRG34] of a new owner's epoch nothing is told before its whole, and what was shown stays", () => {
  const view = known();
  expect(view.receiveEpoch(2 as Epoch)).toBe("new-epoch");
  expect(view.receiveNews({ number: 1, news: news({ present: [bob] }) })).toEqual([]);
  expect(namesIn(view)).toEqual(["ann"]);
  const [told] = view.receiveWhole({
    number: 1,
    news: news({
      whole: true,
      present: [
        { ...ann, number: 2 },
        { ...bob, number: 1 },
      ],
    }),
  });
  expect(told?.news.whole).toBe(true);
  expect(view.receiveEpoch(first)).toBe("past");
});

test("[PRG35] an older whole than what is known is passed over", () => {
  const view = known();
  view.receiveNews({ number: 5, news: news({ present: [bob] }) });
  expect(view.receiveWhole({ number: 4, news: news({ whole: true }) })).toEqual([]);
  expect(namesIn(view)).toEqual(["ann", "bob"]);
});

test("[PRG36] news that do not decode are a gap", () => {
  const view = known();
  expect(view.receiveNews({ number: 5, news: Uint8Array.of(9) })).toEqual([]);
  expect(view.isBehind).toBe(true);
});

test("[PRG56] few or many, a client is found under its newest number until that is gone", () => {
  for (const others of [3, 40]) {
    const view = new PresenceView();
    view.receiveEpoch(first);
    const present = Array.from({ length: others }, (_, index) => person(10 + index, `other-${index}-`));
    view.receiveWhole({ number: 4, news: news({ whole: true, present: [ann, ...present] }) });
    view.receiveNews({ number: 5, news: news({ present: [{ ...ann, number: 99 }, bob] }) });
    view.receiveNews({ number: 6, news: news({ gone: [1, 10] }) });
    expect([ann, bob, present[0]!, present[1]!].map(({ client }) => view.numberOf(client))).toEqual([99, 2, undefined, 11]);
    view.receiveNews({ number: 7, news: news({ gone: [99] }) });
    expect([view.has(ann.client), view.participants]).toEqual([false, others]);
  }
});

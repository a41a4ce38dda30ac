import { expect, test } from "vitest";

import type { ClientId, Millis } from "../../shared/ids.ts";
import { VIEWPORT } from "../../shared/wire/presence.ts";
import { PresenceOutbox } from "./presence-outbox.ts";

const ann = "annannannannann1" as ClientId;
const options = { memberBytesMax: 100, memberFieldsMax: 3, flushMs: 15, repeatMs: 500 };
const at = (ms: number) => ms as Millis;
const field = (name: string, text: string) => ({ name, value: new TextEncoder().encode(text) });
const nothing = () => undefined;
const texts = (states: readonly { fields: readonly { name: string; value: Uint8Array }[] }[]) =>
  states.flatMap(({ fields }) => fields.map(({ name, value }) => `${name}=${new TextDecoder().decode(value)}`));

test("[PRG10] the first is told at once, then the newest of what comes within a sender's interval", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  expect(texts(outbox.takeDue(10, at(0)).fresh)).toEqual(["x=1"]);
  for (let ms = 1; ms < 300; ms++) outbox.set(ann, [field("x", String(ms))]);
  expect(texts(outbox.takeDue(10, at(300)).fresh)).toEqual(["x=299"]);
});

test("[PRG18] who says nothing makes nothing due", () => {
  const outbox = new PresenceOutbox(options);
  expect(outbox.set(ann, [])).toBe(true);
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG11] a sender is sampled at its rate, without drifting below it", () => {
  const outbox = new PresenceOutbox(options);
  let told = 0;
  for (let ms = 0; ms < 10_000; ms++) {
    outbox.set(ann, [field("x", String(ms))]);
    if (outbox.dueAt <= ms) told += outbox.takeDue(30, at(ms)).fresh.length;
  }
  expect(told).toBeGreaterThanOrEqual(295);
  expect(told).toBeLessThanOrEqual(302);
});

test("[PRG12] a viewport is told five times a second, whatever else is told", () => {
  const outbox = new PresenceOutbox(options);
  let viewports = 0;
  for (let ms = 0; ms < 2_000; ms += 10) {
    outbox.set(ann, [field("x", String(ms)), field(VIEWPORT, String(ms))]);
    if (outbox.dueAt <= ms) viewports += texts(outbox.takeDue(30, at(ms)).fresh).filter((text) => text.startsWith(VIEWPORT)).length;
  }
  expect(viewports).toBeGreaterThanOrEqual(10);
  expect(viewports).toBeLessThanOrEqual(11);
});

test("[PRG13] what the room has not shown is told again, ever more seldom, until it has", () => {
  const outbox = new PresenceOutbox(options);
  const again: number[] = [];
  outbox.set(ann, [field("x", "1")]);
  outbox.takeDue(30, at(0));
  for (let ms = 0; ms < 20_000; ms += 100) {
    outbox.findUnshown(nothing, at(ms));
    if (texts(outbox.takeDue(30, at(ms)).again).length > 0) again.push(ms);
  }
  expect(again).toEqual([500, 1_500, 3_500, 7_500, 15_500]);
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.findUnshown((_, name) => (name === "x" ? field("x", "1").value : undefined), at(60_000));
  expect([outbox.dueAt, outbox.hasUnshown]).toEqual([Number.POSITIVE_INFINITY, false]);
});

test("[PRG14] what another gateway made the room show instead is told again", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  outbox.takeDue(30, at(0));
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.receiveShown(ann, [field("x", "")]);
  outbox.findUnshown(nothing, at(600));
  expect(texts(outbox.takeDue(30, at(600)).again)).toEqual(["x=1"]);
});

test("[PRG15] a field taken back is taken back again while something late shows it", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "")]);
  outbox.takeDue(30, at(0));
  outbox.findUnshown(nothing, at(100));
  expect(outbox.hasUnshown).toBe(false);
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.findUnshown(() => field("x", "1").value, at(600));
  expect(texts(outbox.takeDue(30, at(600)).again)).toEqual(["x="]);
});

test("[PRG16] a new owner is told everything, as nothing fresh", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1"), field("y", "2")]);
  outbox.takeDue(30, at(0));
  outbox.receiveShown(ann, [field("x", "1"), field("y", "2")]);
  outbox.tellAgain();
  const { fresh, again } = outbox.takeDue(30, at(20));
  expect([texts(fresh), texts(again)]).toEqual([[], ["x=1", "y=2"]]);
});

test("[PRG17] more than a member may show is refused whole, and what it showed stays", () => {
  const outbox = new PresenceOutbox(options);
  expect(outbox.set(ann, [field("x", "1".repeat(90))])).toBe(true);
  expect(outbox.set(ann, [field("y", "1".repeat(90))])).toBe(false);
  expect(outbox.set(ann, [field("a", "1"), field("b", "1"), field("c", "1")])).toBe(false);
  expect(outbox.set(ann, [field("x", ""), field("y", "1".repeat(90))])).toBe(true);
  expect(texts(outbox.takeDue(30, at(0)).fresh).map((text) => text.slice(0, 3))).toEqual(["x=", "y=1"]);
});

test("[PRG19] names that a member goes through while nobody is told of them are not kept, and it is told of afterwards", () => {
  const outbox = new PresenceOutbox({ ...options, memberBytesMax: 1_000, memberFieldsMax: 64 });
  const all = (turn: number, text: string) => Array.from({ length: 64 }, (_, index) => field(`${turn}-${index}`, text));
  outbox.set(ann, all(0, "1"));
  outbox.takeDue(30, at(0));
  for (let turn = 1; turn <= 1_000; turn++) expect(outbox.set(ann, [...all(turn - 1, ""), ...all(turn, "1")])).toBe(true);
  outbox.tellAgain();
  const { fresh, again } = outbox.takeDue(30, at(60_000));
  expect(texts([...fresh, ...again])).toEqual(texts([{ fields: [...all(0, ""), ...all(1_000, "1")] }]));
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG28] while the room may still show more that is taken back than is remembered, other names are refused", () => {
  const outbox = new PresenceOutbox(options);
  const all = (names: string, text: string) => [...names].map((name) => field(name, text));
  outbox.set(ann, all("abc", "1"));
  outbox.takeDue(30, at(0));
  expect(outbox.set(ann, [...all("abc", ""), ...all("def", "1")])).toBe(true);
  outbox.takeDue(30, at(100));
  expect(outbox.set(ann, [...all("def", ""), ...all("ghi", "1")])).toBe(false);
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
  outbox.findUnshown((_, name) => ("def".includes(name) ? field(name, "1").value : undefined), at(200));
  expect(outbox.set(ann, [...all("def", ""), ...all("ghi", "1")])).toBe(true);
  expect(texts(outbox.takeDue(30, at(200)).fresh)).toEqual(["d=", "e=", "f=", "g=1", "h=1", "i=1"]);
});

test("[PRG29] who takes back very many fields that nobody was told of makes nothing due", () => {
  const outbox = new PresenceOutbox(options);
  expect(
    outbox.set(
      ann,
      [..."abcdefghij"].map((name) => field(name, "")),
    ),
  ).toBe(true);
  expect(outbox.takeDue(30, at(0))).toEqual({ fresh: [], again: [] });
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG37] a field named several times in one frame counts once, as it was named last", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1".repeat(90))]);
  expect(outbox.set(ann, [field("x", ""), field("x", ""), field("x", "")])).toBe(true);
  expect(outbox.set(ann, [field("y", "1".repeat(110))])).toBe(false);
  expect(
    outbox.set(
      ann,
      [..."abcd"].map((name) => field(name, "1")),
    ),
  ).toBe(false);
  expect(outbox.set(ann, [field("y", "1".repeat(90)), field("y", "2".repeat(90))])).toBe(true);
  expect(texts(outbox.takeDue(30, at(0)).fresh)).toEqual(["x=", `y=${"2".repeat(90)}`]);
});

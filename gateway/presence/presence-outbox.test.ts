import { expect, test } from "vitest";

import type { ClientId, Millis } from "../../shared/ids.ts";
import { VIEWPORT } from "../../shared/wire/presence.ts";
import { PresenceOutbox } from "./presence-outbox.ts";

const [ann, bob] = ["annannannannann1", "bobbobbobbobbob1"] as ClientId[] as [ClientId, ClientId];
const options = { memberBytesMax: 100, memberFieldsMax: 3, flushMs: 15, repeatMs: 500 };
const at = (ms: number) => ms as Millis;
const field = (name: string, text: string) => ({ name, value: new TextEncoder().encode(text) });
const nothing = () => undefined;
const texts = (states: readonly { fields: readonly { name: string; value: Uint8Array }[] }[]) =>
  states.flatMap(({ fields }) => fields.map(({ name, value }) => `${name}=${new TextDecoder().decode(value)}`));

test("[PRG10] the first value is sent immediately, later ones at the sender's interval, the newest only", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  expect(texts(outbox.takeDue(10, at(0)).fresh)).toEqual(["x=1"]);
  for (let ms = 1; ms < 300; ms++) outbox.set(ann, [field("x", String(ms))]);
  expect(texts(outbox.takeDue(10, at(300)).fresh)).toEqual(["x=299"]);
  outbox.set(ann, [field("x", "newer")]);
  outbox.receiveShown(ann, [field("x", "299")]);
  expect(texts(outbox.takeDue(10, at(400)).fresh), "although the room shows the earlier value").toEqual(["x=newer"]);
});

test("[PRG18] a sender without fields makes nothing due", () => {
  const outbox = new PresenceOutbox(options);
  expect(outbox.set(ann, [])).toBe(true);
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG11] a sender's fields are sent at its rate, without falling below it", () => {
  const outbox = new PresenceOutbox(options);
  let sentCount = 0;
  for (let ms = 0; ms < 10_000; ms++) {
    outbox.set(ann, [field("x", String(ms))]);
    if (outbox.dueAt <= ms) sentCount += outbox.takeDue(30, at(ms)).fresh.length;
  }
  expect(sentCount).toBeGreaterThanOrEqual(295);
  expect(sentCount).toBeLessThanOrEqual(302);
});

test("[PRG11] a sender that is due does not make others send above their rate", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  outbox.takeDue(10, at(0));
  outbox.set(ann, [field("x", "2")]);
  outbox.takeDue(10, at(20));
  outbox.set(ann, [field("x", "3")]);
  outbox.set(bob, [field("y", "1")]);
  expect(texts(outbox.takeDue(10, at(60)).fresh)).toEqual(["y=1"]);
});

test("[PRG12] a viewport is sent five times a second, with or without other fields", () => {
  const outbox = new PresenceOutbox(options);
  let viewports = 0;
  for (let ms = 0; ms < 2_000; ms += 10) {
    outbox.set(ann, [field("x", String(ms)), field(VIEWPORT, String(ms))]);
    if (outbox.dueAt <= ms) viewports += texts(outbox.takeDue(30, at(ms)).fresh).filter((text) => text.startsWith(VIEWPORT)).length;
  }
  expect(viewports).toBeGreaterThanOrEqual(10);
  expect(viewports).toBeLessThanOrEqual(11);
});

test("[PRG13] a field that the room does not show is sent again, at growing intervals, until the room shows it", () => {
  const outbox = new PresenceOutbox(options);
  const again: number[] = [];
  outbox.set(ann, [field("x", "1")]);
  outbox.takeDue(30, at(0));
  for (let ms = 0; ms < 32_000; ms += 100) {
    outbox.findUnshown(nothing, at(ms));
    if (texts(outbox.takeDue(30, at(ms)).again).length > 0) again.push(ms);
  }
  expect(again).toEqual([500, 1_500, 3_500, 7_500, 15_500, 23_500, 31_500]);
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.findUnshown((_, name) => (name === "x" ? field("x", "1").value : undefined), at(60_000));
  expect([outbox.dueAt, outbox.hasUnshown]).toEqual([Number.POSITIVE_INFINITY, false]);
});

test("[PRG14] a field is sent again when another gateway made the room show a different value", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  outbox.takeDue(30, at(0));
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.receiveShown(ann, [field("x", "")]);
  outbox.findUnshown(nothing, at(600));
  expect(texts(outbox.takeDue(30, at(600)).again)).toEqual(["x=1"]);
});

test("[PRG15] a removal is sent again while a late message makes the room show the field", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "")]);
  outbox.takeDue(30, at(0));
  outbox.findUnshown(nothing, at(100));
  expect(outbox.hasUnshown).toBe(false);
  outbox.receiveShown(ann, [field("x", "1")]);
  outbox.findUnshown(() => field("x", "1").value, at(600));
  expect(texts(outbox.takeDue(30, at(600)).again)).toEqual(["x="]);
});

test("[PRG16] a new owner receives all fields, none of them marked as fresh", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1"), field("y", "2")]);
  outbox.takeDue(30, at(0));
  outbox.receiveShown(ann, [field("x", "1"), field("y", "2")]);
  outbox.resend();
  const { fresh, again } = outbox.takeDue(30, at(20));
  expect([texts(fresh), texts(again)]).toEqual([[], ["x=1", "y=2"]]);
});

test("[PRG16] a new owner receives all fields at once, even if they have just been sent", () => {
  const outbox = new PresenceOutbox(options);
  for (const [ms, text] of [
    [0, "1"],
    [20, "2"],
  ] as const) {
    outbox.set(ann, [field("x", text), field(VIEWPORT, text)]);
    outbox.takeDue(1, at(ms));
  }
  outbox.resend();
  expect(texts(outbox.takeDue(1, at(40)).again)).toEqual(["x=2", `${VIEWPORT}=2`]);
});

test("[PRG16] a new owner that does not show a field receives it again after the shortest interval", () => {
  const outbox = new PresenceOutbox(options);
  outbox.set(ann, [field("x", "1")]);
  for (const ms of [0, 500, 1_500]) {
    outbox.findUnshown(nothing, at(ms));
    outbox.takeDue(30, at(ms));
  }
  outbox.resend();
  outbox.takeDue(30, at(1_520));
  outbox.findUnshown(nothing, at(2_020));
  expect(texts(outbox.takeDue(30, at(2_060)).again)).toEqual(["x=1"]);
});

test("[PRG17] fields beyond a member's limits are refused together, and the shown ones stay", () => {
  const outbox = new PresenceOutbox(options);
  expect(outbox.set(ann, [field("x", "1".repeat(90))])).toBe(true);
  expect(outbox.set(ann, [field("y", "1".repeat(90))])).toBe(false);
  expect(outbox.set(ann, [field("a", "1"), field("b", "1"), field("c", "1")])).toBe(false);
  expect(outbox.set(ann, [field("x", ""), field("y", "1".repeat(90))])).toBe(true);
  expect(texts(outbox.takeDue(30, at(0)).fresh).map((text) => text.slice(0, 3))).toEqual(["x=", "y=1"]);
});

test("[PRG19] names that a member used and removed before they were sent are forgotten, and later fields are sent", () => {
  const outbox = new PresenceOutbox({ ...options, memberBytesMax: 1_000, memberFieldsMax: 64 });
  const all = (turn: number, text: string) => Array.from({ length: 64 }, (_, index) => field(`${turn}-${index}`, text));
  outbox.set(ann, all(0, "1"));
  outbox.takeDue(30, at(0));
  for (let turn = 1; turn <= 1_000; turn++) expect(outbox.set(ann, [...all(turn - 1, ""), ...all(turn, "1")])).toBe(true);
  outbox.resend();
  const { fresh, again } = outbox.takeDue(30, at(60_000));
  expect(texts([...fresh, ...again])).toEqual(texts([{ fields: [...all(0, ""), ...all(1_000, "1")] }]));
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG28] new field names are refused while too many removed fields may still be shown", () => {
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

test("[PRG29] removing very many fields that were never sent makes nothing due", () => {
  const outbox = new PresenceOutbox(options);
  expect(
    outbox.set(
      ann,
      [..."abcdefghij"].map((name) => field(name, "")),
    ),
  ).toBe(true);
  expect(outbox.takeDue(30, at(0))).toMatchObject({ fresh: [], again: [] });
  expect(outbox.dueAt).toBe(Number.POSITIVE_INFINITY);
});

test("[PRG37] a field that a frame names several times counts once, with the last value", () => {
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

/** Changes every field of each state all the time for ten seconds, and returns the bytes that were sent of names and values. */
function sentInTenSeconds(states: (ms: number) => ReturnType<typeof field>[], participants: number) {
  const outbox = new PresenceOutbox({ ...options, memberBytesMax: 8_192, memberFieldsMax: 64 });
  const sent = { states: 0, bytes: 0, delayed: 0, newest: new Map<string, string>() };
  const take = (ms: number) => {
    if (outbox.dueAt > ms) return;
    const { fresh, delayed } = outbox.takeDue(30, at(ms), participants);
    sent.states += fresh.length;
    sent.delayed += delayed;
    for (const { fields } of fresh)
      for (const { name, value } of fields) {
        sent.bytes += name.length + value.byteLength;
        sent.newest.set(name, new TextDecoder().decode(value));
      }
  };
  for (let ms = 0; ms < 10_000; ms += 5) {
    outbox.set(ann, states(ms));
    take(ms);
  }
  return { ...sent, outbox, take };
}
const large = (ms: number) => Array.from({ length: 60 }, (_, index) => field(`f${index}`, String(ms).padStart(130, ".")));
const pointerAndCaret = (ms: number) => [field("@cursor", String(ms).padStart(8)), field("cursor", String(ms).padStart(36))];

test("[PRG89] a member with large states sends 32 KiB a second, and the newest values", () => {
  const { bytes, states, delayed, newest, outbox, take } = sentInTenSeconds(large, 30);
  expect(bytes).toBeLessThanOrEqual(11 * 32 * 1024 + 8_192);
  expect(states).toBeGreaterThanOrEqual(25);
  expect(delayed).toBeGreaterThan(0);
  take(outbox.dueAt);
  expect([...newest.values()].map((text) => text.replaceAll(".", ""))).toEqual(Array.from({ length: 60 }, () => "9995"));
});

test("[PRG89] many very small fields count by their number", () => {
  expect(sentInTenSeconds((ms) => large(ms).map(({ name }) => field(name, String(ms % 10))), 30).states).toBeLessThanOrEqual(125);
});

test("[PRG89] the participants of a larger room share 1 MiB a second", () => {
  expect(sentInTenSeconds(large, 100).bytes).toBeLessThanOrEqual((11 * 1024 * 1024) / 100 + 8_192);
});

test.each([1, 30, 300])("[PRG89] the bytes of pointers and carets delay nobody in a room of %i at 20 a second", (participants) => {
  const { states } = sentInTenSeconds((ms) => pointerAndCaret(ms - (ms % 50)), participants);
  expect(states).toBeGreaterThanOrEqual(200);
});

test("[PRG89] a large state now and then does not delay the pointer that follows", () => {
  const outbox = new PresenceOutbox({ ...options, memberBytesMax: 8_192, memberFieldsMax: 64 });
  for (let ms = 0; ms < 10_000; ms += 2_000) {
    outbox.set(ann, large(ms));
    outbox.takeDue(20, at(ms), 30);
    outbox.set(ann, pointerAndCaret(ms));
    expect(outbox.takeDue(20, at(ms + 50), 30).fresh).toHaveLength(1);
  }
});

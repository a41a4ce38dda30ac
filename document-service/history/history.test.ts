import fc from "fast-check";
import { expect, test } from "vitest";

import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import {
  type History,
  type HistoryPolicy,
  isVersionDue,
  readableFrom,
  withVersion,
  retained,
  type Segment,
  segmentsToTakeUp,
  type DocumentVersion,
  pathsTo,
} from "./history.ts";

const POLICY: HistoryPolicy = {
  historyMsMax: 10_000,
  historyBytesMax: 1_000,
  historyVersionMsMin: 600,
  historyVersionEditsMax: 50,
  historyVersionsMax: 4,
  historyNamedMax: 5,
  historySegmentBytesMax: 10_000,
  historySegmentMsMin: 1,
};

const segment = (firstSeq: number, lastSeq: number, bytes = 10): Segment => ({
  object: `edits ${firstSeq}-${lastSeq}`,
  bytes,
  sha256: "",
  firstSeq: firstSeq as Seq,
  lastSeq: lastSeq as Seq,
  firstTime: firstSeq as UnixMillis,
  lastTime: lastSeq as UnixMillis,
});
const version = (seq: number, name?: string): DocumentVersion => ({
  id: `v${seq}`,
  object: `version ${seq}`,
  bytes: 10,
  sha256: "",
  epoch: 1 as Epoch,
  seq: seq as Seq,
  time: seq as UnixMillis,
  ...(name === undefined ? {} : { name }),
});
const history = (versions: readonly DocumentVersion[], segments: readonly Segment[]): History => ({
  versions: [...versions],
  segments: [...segments],
  through: 9,
});

test("[HIS1] many small segments are combined into few, and each record is rewritten only a few times", () => {
  let [segments, rewritten]: [Segment[], number] = [[], 0];
  for (let seq = 1; seq <= 5_000; seq++) {
    const takenUp = segmentsToTakeUp(
      history([], segments),
      { bytes: 10, time: seq as UnixMillis },
      { ...POLICY, historySegmentBytesMax: 1_000_000, historyMsMax: 1_000_000 },
    );
    const bytes = takenUp.reduce((sum, one) => sum + one.bytes, 0);
    rewritten += bytes;
    segments = [...segments.slice(0, segments.length - takenUp.length), segment(takenUp[0]?.firstSeq ?? seq, seq, bytes + 10)];
  }
  expect(segments.length).toBeLessThan(15);
  expect(rewritten / 50_000).toBeLessThan(15);
  const old = history([], [segment(1, 400), segment(9_500, 9_600)]);
  expect(segmentsToTakeUp(old, { bytes: 100, time: 10_000 as UnixMillis }, POLICY).map(({ firstSeq }) => firstSeq)).toEqual([9_500]);
});

test("[HIS2] a state is built from the newest version before it, else from an older one or from nothing, and never across a gap", () => {
  const segments = [segment(1, 100), segment(101, 200), segment(301, 400)];
  const ways = (target: number) =>
    pathsTo(history([version(50), version(150), version(350)], segments), target as Seq).map(({ base, segments: needed }) => [
      base?.seq ?? 0,
      needed.map(({ firstSeq }) => firstSeq),
    ]);
  expect(ways(160)).toEqual([
    [150, [101]],
    [50, [1, 101]],
    [0, [1, 101]],
  ]);
  expect(ways(390)).toEqual([[350, [301]]]);
  expect(ways(350)[0]).toEqual([350, []]);
  expect(ways(250).length).toBe(3); // The edits that follow may be in the log.
  expect([
    readableFrom(history([version(50), version(350)], segments)),
    readableFrom(history([], segments.slice(0, 2))),
    readableFrom(history([], [])),
  ]).toEqual([350, 0, undefined]);
});

test("[HIS6] naming a version does not hide the edits before it that the log still has", () => {
  const young = { ...history([], []), through: 0 };
  expect([readableFrom(young), readableFrom(withVersion(young, version(10, "kept")))]).toEqual([undefined, undefined]);
  expect(readableFrom(history([version(10, "kept")], [])), "after the segments were removed").toBe(10);
});

test("[HIS3] a version is due after a number of edits or a time, and never of an unchanged document", () => {
  const kept = history([version(100)], []);
  const due = (seq: number, versionedMs: number) => isVersionDue(kept, { seq: seq as Seq, versionedMs }, POLICY);
  expect([due(100, 99_999), due(149, 599), due(150, 0), due(101, 600)]).toEqual([false, false, true, true]);
  expect(isVersionDue(kept, { seq: 999 as Seq, versionedMs: 99_999 }, { ...POLICY, historyMsMax: 0 })).toBe(false);
});

test("[HIS4] history that is too old or too large is removed, the oldest first, and named versions stay", () => {
  const old = history([version(1_000, "kept"), version(2_000), version(15_000)], [segment(1, 4_000), segment(4_001, 16_000)]);
  expect(retained(old, 20_000 as UnixMillis, POLICY).dropped.toSorted()).toEqual(["edits 1-4000", "version 2000"]);
  const large = history([version(10, "kept"), version(500)], [segment(1, 400, 600), segment(401, 800, 600)]);
  expect(retained(large, 900 as UnixMillis, POLICY)).toEqual({
    history: history([version(10, "kept"), version(500)], [segment(401, 800, 600)]),
    dropped: ["edits 1-400"],
  });
  const alone = history([{ ...version(10, "kept"), bytes: 900 }, ...[20, 30, 40].map((seq) => ({ ...version(seq), bytes: 50 }))], []);
  expect(retained(alone, 900 as UnixMillis, POLICY).dropped).toEqual(["version 20"]);
  expect(retained(history([version(10), { ...version(20), bytes: 2_000 }], []), 900 as UnixMillis, POLICY).dropped).toEqual(["version 10"]);
  const many = history(
    [1, 2, 3, 4, 5, 6].map((seq) => version(seq)),
    [],
  );
  expect(retained(many, 10 as UnixMillis, POLICY).history.versions.map(({ seq }) => seq)).toEqual([1, 3, 4, 5, 6]);
});

test("[HIS5] retention either keeps or drops every object", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(20_000), fc.boolean()), { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 20 }),
      fc.nat(30_000),
      (versions, sizes, now) => {
        let seq = 0;
        const before = history(
          versions
            .map(([at, isNamed], index) => ({ ...version(at, isNamed ? "name" : undefined), object: `v${index}` }))
            .sort((a, b) => a.seq - b.seq),
          sizes.map((size) => segment(seq + 1, (seq += size), size)),
        );
        const { history: after, dropped } = retained(before, now as UnixMillis, POLICY);
        const objects = ({ versions: all, segments }: History) => [...all, ...segments].map(({ object }) => object);
        expect([...objects(after), ...dropped].toSorted()).toEqual(objects(before).toSorted());
        expect(after.versions.filter(({ name }) => name !== undefined)).toEqual(before.versions.filter(({ name }) => name !== undefined));
      },
    ),
  );
});

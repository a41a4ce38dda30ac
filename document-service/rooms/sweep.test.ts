import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { decideSnapshotSweep, planSnapshotRemoval, Sweep, type SweepInput } from "./sweep.ts";

const OPTIONS = { writer: "this-run-0-1-", logPartitions: 1, documentsSweepMs: 60_000 };
const [A, B] = ["acme.a", "acme.b"] as [RoomKey, RoomKey];
const LOOK_MS = 5_000;
const pass = { kind: "pause", ms: OPTIONS.documentsSweepMs };
const swept = (isDone: boolean): SweepInput => ({ kind: "snapshots-swept", isDone });
const listed = (names: readonly string[]): SweepInput => ({ kind: "snapshots-listed", names });

test("[SWE1] a pass visits untrimmed rooms, then sweeps snapshots, histories and unfinished objects, and starts again after a pause", () => {
  const sweep = new Sweep(0, OPTIONS);
  const inputs: SweepInput[] = [
    { kind: "started" },
    { kind: "untrimmed-listed", rooms: [A, B] },
    { kind: "visited" },
    { kind: "visited" },
    listed([`${A}/1-1-old`, `${A}/1-2-old`, `${B}/1-1-this-run-0-1-1`, "no room"]),
    swept(true),
    { kind: "history-listed", names: [`${B}/edits-1-2-old`, `${A}/edits-1-2-this-run-0-1-2`] },
    { kind: "history-swept" },
    { kind: "history-swept" },
    { kind: "unfinished-removed", objects: 0 },
    { kind: "paused" },
  ];
  expect(inputs.map((input) => sweep.receive(input))).toEqual([
    { kind: "list-untrimmed" },
    { kind: "visit", room: A },
    { kind: "visit", room: B },
    { kind: "list-snapshots" },
    { kind: "sweep-snapshots", room: A, names: [`${A}/1-1-old`, `${A}/1-2-old`] },
    { kind: "list-history" },
    { kind: "sweep-history", room: B, names: [`${B}/edits-1-2-old`] },
    { kind: "sweep-history", room: A, names: [] },
    { kind: "remove-unfinished" },
    pass,
    { kind: "list-untrimmed" },
  ]);
});

test("[SWE2] a room with other work to do is swept again after a pause, twelve times at most", () => {
  const sweep = new Sweep(0, OPTIONS);
  const ofB = { kind: "sweep-snapshots", room: B, names: [`${B}/1-1-old`] };
  sweep.receive(listed([`${A}/1-1-old`, `${B}/1-1-old`]));
  expect(sweep.receive(swept(true))).toEqual(ofB);
  for (let look = 2; look <= 12; look++) {
    expect(sweep.receive(swept(false))).toEqual({ kind: "pause", ms: LOOK_MS });
    expect(sweep.receive({ kind: "paused" })).toEqual(ofB);
  }
  expect(sweep.receive(swept(false))).toEqual({ kind: "list-history" });
});

test("[SWE3] a pass that fails at any step starts again from the beginning after a pause", () => {
  const sweep = new Sweep(0, OPTIONS);
  sweep.receive(listed([`${A}/1-1-old`]));
  expect([sweep.receive({ kind: "failed" }), sweep.receive({ kind: "paused" })]).toEqual([pass, { kind: "list-untrimmed" }]);
});

test("[SWE4] only one partition's sweep removes unfinished objects, and each sweeps its own rooms only", () => {
  const options = { ...OPTIONS, logPartitions: 2 };
  const roomsOf = (partition: number) => {
    const sweep = new Sweep(partition, options);
    const rooms: string[] = [];
    const names = Array.from({ length: 20 }, (_, index) => `acme.room${index}/1-1-old`);
    for (let effect = sweep.receive(listed(names)); effect.kind === "sweep-snapshots"; effect = sweep.receive(swept(true))) {
      rooms.push(effect.room);
    }
    return { rooms, last: sweep.receive({ kind: "history-listed", names: [] }).kind };
  };
  const [first, second] = [roomsOf(0), roomsOf(1)];
  expect([first.last, second.last]).toEqual(["remove-unfinished", "pause"]);
  expect(new Set([...first.rooms, ...second.rooms]).size).toBe(20);
  expect(first.rooms.length * second.rooms.length).toBeGreaterThan(0);
});

test("[SWE5] a room's snapshots are swept once no other job runs in it, and not in this pass if the room cannot be opened", () => {
  const idle = { isOpened: true, isOpening: false, isBusy: false, isWipeDue: false };
  expect([idle, { ...idle, isOpened: false }].map(decideSnapshotSweep)).toEqual(["sweep", "skip"]);
  for (const busy of ["isOpening", "isBusy", "isWipeDue"]) expect(decideSnapshotSweep({ ...idle, [busy]: true })).toBe("later");
});

test("[SWE6] a snapshot that no checkpoint names is removed after the checkpoint is written again, and never without a checkpoint", () => {
  const checkpoint = { snapshot: { object: "s2", bytes: 1, sha256: "" } } as Checkpoint;
  const living = { isDeleted: false, checkpoint };
  expect(planSnapshotRemoval(["s1", "s2"], living)).toEqual({ kind: "replace-checkpoint-and-remove", checkpoint, names: ["s1"] });
  expect(planSnapshotRemoval(["s2"], living)).toEqual({ kind: "none" });
  expect(planSnapshotRemoval(["s1"], { isDeleted: false, checkpoint: undefined })).toEqual({ kind: "none" });
  expect(planSnapshotRemoval(["s1"], { isDeleted: true, checkpoint: undefined })).toEqual({ kind: "remove", names: ["s1"] });
});

test("[SWE7] every object of a room deleted under this lease is swept, until a pass lists none of them", () => {
  const sweep = new Sweep(0, OPTIONS);
  const own = `${A}/1-1-this-run-0-1-1`;
  const others = `${B}/1-1-this-run-0-1-2`;
  const passWith = (snapshots: readonly string[], history: readonly string[], end: SweepInput) => {
    const effects = [sweep.receive({ kind: "started" }), sweep.receive({ kind: "untrimmed-listed", rooms: [] })];
    effects.push(sweep.receive(listed(snapshots)));
    if (effects.at(-1)?.kind === "sweep-snapshots") effects.push(sweep.receive(swept(true)));
    effects.push(sweep.receive({ kind: "history-listed", names: history }));
    if (effects.at(-1)?.kind === "sweep-history") effects.push(sweep.receive({ kind: "history-swept" }));
    sweep.receive(end);
    return effects.flatMap((effect) => ("names" in effect ? effect.names : []));
  };
  const done: SweepInput = { kind: "unfinished-removed", objects: 0 };
  expect(passWith([own, others], [], done)).toEqual([]);
  sweep.receiveWiped(A);
  expect(passWith([own, others], [`${A}/edits-1-1-this-run-0-1-3`], done)).toEqual([own, `${A}/edits-1-1-this-run-0-1-3`]);
  expect(passWith([], [], { kind: "failed" })).toEqual([]);
  expect(passWith([own], [], done)).toEqual([own]);
  expect(passWith([], [own], done)).toEqual([own]);
  expect(passWith([], [], done)).toEqual([]);
  expect(passWith([own], [], done)).toEqual([]);
});

test("[SWE8] a room whose deletion ends during a pass is swept in the next one too", () => {
  const sweep = new Sweep(0, OPTIONS);
  sweep.receive({ kind: "started" });
  sweep.receiveWiped(A);
  sweep.receive(listed([]));
  sweep.receive({ kind: "history-listed", names: [] });
  sweep.receive({ kind: "unfinished-removed", objects: 0 });
  sweep.receive({ kind: "paused" });
  const own = `${A}/1-1-this-run-0-1-1`;
  expect(sweep.receive(listed([own]))).toEqual({ kind: "sweep-snapshots", room: A, names: [own] });
});

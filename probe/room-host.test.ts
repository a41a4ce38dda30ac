import { expect, test } from "vitest";

import type { ClientId, Seq } from "../shared/ids.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import type { Point } from "../shared/wire/positions.ts";
import type { Finding } from "./findings.ts";
import { MarkWriter } from "./marks.ts";
import type { EnterRoom, ProbeParticipant, ParticipantListener } from "./ports.ts";
import { ProbedRoom } from "./room-host.ts";
import type { ProbeRoomPlan } from "./plan.ts";

/** A room in which the test decides how long everything takes. */
class FakeRoom {
  readonly clock = new FakeClock(0);
  readonly findings: Finding[] = [];
  readonly members: {
    readonly listener: ParticipantListener;
    readonly seesPresence: boolean;
    unsavedEdits: number;
    cuts: number;
    returns: number;
    isGone: boolean;
  }[] = [];
  /** Participants that receive nothing. */
  readonly deaf = new Set<number>();
  acksAfterMs = 5;
  arrivesAfterMs = 3;
  seenAfterMs = 50;
  #seq = 0;
  readonly probed: ProbedRoom;

  constructor(plan: Partial<ProbeRoomPlan> = {}) {
    this.probed = new ProbedRoom(
      { kind: "small", room: "probe-small-1", participants: 2, editsPerSecond: 1, presencePerSecond: 1, ...plan },
      { lateMs: 10_000, reconnectMs: 60_000, unsavedEditsMax: 3 },
      { clock: this.clock, unit: () => 0.5, run: "run", enter: this.#enter, record: (finding) => this.findings.push(finding) },
    );
  }

  kinds(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { kind } of this.findings) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }

  msOf(kind: Finding["kind"]): number[] {
    return this.findings.flatMap((finding) => (finding.kind === kind && "ms" in finding ? [Math.round(finding.ms)] : []));
  }

  readonly #enter: EnterRoom = (_, { index, seesPresence }, listener): ProbeParticipant => {
    const member = { listener, seesPresence, unsavedEdits: 0, cuts: 0, returns: 0, isGone: false };
    this.members.push(member);
    listener.came();
    return {
      client: `client-${index}` as ClientId,
      get unsavedEdits() {
        return member.unsavedEdits;
      },
      send: (payload) => {
        member.unsavedEdits += 1;
        const seq = (this.#seq += 1) as Seq;
        for (const [other, { listener }] of this.members.entries()) {
          if (this.deaf.has(other)) continue;
          this.clock.after(other === index ? this.acksAfterMs : this.arrivesAfterMs, () => {
            if (other === index) member.unsavedEdits -= 1;
            listener.delivered([{ seq, payload }]);
          });
        }
      },
      pointAt: (point: Point) => {
        for (const [other, { listener, seesPresence: sees }] of this.members.entries())
          if (other !== index && sees) this.clock.after(this.seenAfterMs, () => listener.pointed(`client-${index}` as ClientId, point));
      },
      cut: () => (member.cuts += 1),
      comeBack: () => (member.returns += 1),
      leave: () => (member.isGone = true),
    };
  };
}

test("[PRH1] the pair writes and points, and the probe measures when each sees the other's edits and pointer", () => {
  const room = new FakeRoom();
  room.clock.turn(10_000);
  expect(room.msOf("edit-arrived")).toEqual(Array(20).fill(3));
  expect(room.msOf("edit-acknowledged")).toEqual(Array(20).fill(5));
  expect(room.msOf("presence-seen")).toEqual(Array(20).fill(50));
  expect(Object.keys(room.kinds()).toSorted()).toEqual(["edit-acknowledged", "edit-arrived", "presence-seen"]);
  expect([room.probed.away, room.probed.oldestMs(room.clock.now())]).toEqual([0, 0]);
});

test("[PRH2] in a large room only the pair acts and follows presence, and an edit is measured to each participant but the visitor", () => {
  const room = new FakeRoom({ participants: 5 });
  room.clock.turn(10_000);
  expect(room.members.map(({ seesPresence }) => seesPresence)).toEqual([true, true, false, false, false, false]);
  expect(room.kinds()).toMatchObject({ "edit-acknowledged": 20, "edit-arrived": 80, "presence-seen": 20 });
});

test("[PRH3] only the visitor loses its connection again and again", () => {
  const room = new FakeRoom({ participants: 4 });
  room.clock.turn(300_000);
  expect(room.members.map(({ cuts }) => cuts)).toEqual([0, 0, 0, 0, 5]);
  expect(
    room.members.map(({ returns }) => returns),
    "a refused participant",
  ).toEqual([5, 5, 5, 5, 5]);
});

test("[PRH4] a participant with too many unacknowledged edits makes no more, and continues when acks arrive", () => {
  const room = new FakeRoom();
  room.deaf.add(0);
  room.clock.turn(10_000);
  expect(room.kinds()["edit-withheld"]).toBe(7);
  expect(room.members[0]!.unsavedEdits).toBe(3);
  expect(room.kinds()["edit-acknowledged"], "the other's").toBe(10);
  expect(room.probed.oldestMs(room.clock.now())).toBe(9_500);
  room.members[0]!.unsavedEdits = 0;
  room.deaf.delete(0);
  room.clock.turn(1_000);
  expect(room.kinds()["edit-withheld"]).toBe(7);
});

test("[PRH5] an edit that never reaches the other of the pair is lost, and counted once", () => {
  const room = new FakeRoom();
  room.clock.turn(2_000);
  room.deaf.add(1);
  room.clock.turn(1_000);
  room.deaf.delete(1);
  room.clock.turn(5_000);
  expect(room.kinds()).toMatchObject({ "edit-lost": 1 });
});

test("[PRH6] no participant points while the other of the pair is away", () => {
  const room = new FakeRoom();
  room.members[1]?.listener.went();
  room.clock.turn(100);
  room.members[1]!.listener.went();
  const before = room.kinds()["presence-seen"] ?? 0;
  room.clock.turn(5_000);
  expect([room.kinds()["presence-seen"] ?? 0, room.probed.away]).toEqual([before, 1]);
  room.members[1]!.listener.came();
  room.clock.turn(5_000);
  expect(room.kinds()["presence-seen"]).toBe(before + 10);
});

test("[PRH7] the probe ignores another probe in the same room", () => {
  const room = new FakeRoom();
  room.clock.turn(501);
  const { listener } = room.members[1]!;
  for (const payload of [new MarkWriter("0", "another", 9).write(1), new Uint8Array([0, 0])])
    listener.delivered([{ seq: 1 as Seq, payload }]);
  expect(room.findings).toEqual([]);
});

test("[PRH8] a stopped room leaves with all participants, late ones too, and does nothing more", () => {
  const room = new FakeRoom({ participants: 100 });
  room.clock.turn(1_000);
  room.probed.leave();
  room.clock.turn(200);
  const before = room.findings.length;
  room.clock.turn(10_000);
  expect(room.members.length).toBeLessThan(50);
  expect(room.members.every(({ isGone }) => isGone)).toBe(true);
  expect(room.findings).toHaveLength(before);
  expect(room.clock.pending).toBe(0);
});

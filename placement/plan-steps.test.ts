import { expect, test } from "vitest";

import type { RoomKey, ServerId } from "../shared/ids.ts";
import { PlanSteps } from "./plan-steps.ts";
import type { PlanAction, PlanStep } from "./plan.ts";

const [a, b, c] = ["a", "b", "c"] as ServerId[] as [ServerId, ServerId, ServerId];
const promote: PlanAction = { kind: "promote", from: a, to: b };
const move: PlanAction = { kind: "move", from: a, to: b };
const follow: PlanAction = { kind: "follow", by: c, instead: undefined };
const step = (room: string, action: PlanAction): PlanStep => ({ room: room as RoomKey, action, reason: "" });
const many = (count: number, action: PlanAction) =>
  Array.from({ length: count }, (_, index) => step(`acme.${action.kind}${index}`, action));

function begun(steps: PlanSteps): string[] {
  const taken: string[] = [];
  for (let next = steps.takeNext(); next !== undefined; next = steps.takeNext())
    taken.push(`${next.step.action.kind} ${next.step.room} ${next.generation}`);
  return taken;
}

test("[STEPS1] a room's replica is placed after its owner, and another room's step does not wait for it", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: [step("acme.x", move), step("acme.x", follow), step("acme.y", follow)] });
  expect(begun(steps)).toEqual(["move acme.x 1", "follow acme.y 1"]);
  steps.settle(step("acme.x", move), false);
  expect(begun(steps)).toEqual(["follow acme.x 1"]);
});

test("[STEPS2] takeovers, moves and replicas each have a maximum in progress", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: [...many(50, promote), ...many(50, move), ...many(50, follow)] });
  const kinds = begun(steps).map((text) => text.split(" ")[0]);
  expect(["promote", "move", "follow"].map((kind) => kinds.filter((one) => one === kind).length)).toEqual([32, 4, 16]);
  steps.settle(step("acme.move0", move), false);
  expect(begun(steps)).toEqual(["move acme.move4 1"]);
});

test("[STEPS3] a new plan replaces the steps that have not begun", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: many(6, move) });
  expect(begun(steps)).toHaveLength(4);
  expect(steps.adopt({ generation: 2, steps: [] })).toBe(0);
  steps.settle(step("acme.move0", move), false);
  expect(begun(steps)).toEqual([]);
});

test("[STEPS4] while a room has a step in progress, a new plan adds only its promotion, which waits for that step", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: [step("acme.x", follow), step("acme.y", promote), step("acme.z", follow)] });
  begun(steps);
  expect(steps.adopt({ generation: 2, steps: [step("acme.x", promote), step("acme.y", promote), step("acme.z", follow)] })).toBe(1);
  expect([begun(steps), steps.waitingPromotionCount]).toEqual([[], 1]);
  for (const room of ["acme.x", "acme.z"]) steps.settle(step(room, follow), false);
  expect(begun(steps)).toEqual(["promote acme.x 2"]);
});

test("[STEPS5] after the owner's step was refused, the replica that was meant for the other owner is not placed", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: [step("acme.x", promote), step("acme.x", follow), step("acme.y", move), step("acme.y", follow)] });
  expect(begun(steps)).toEqual(["promote acme.x 1", "move acme.y 1"]);
  steps.settle(step("acme.x", promote), true);
  steps.settle(step("acme.y", move), false);
  expect(begun(steps)).toEqual(["follow acme.y 1"]);
});

test("[STEPS6] a server that refused to follow keeps no replica, unless it is chosen again, follows later, or the room has a step in progress", () => {
  const steps = new PlanSteps();
  const follows = ["acme.x", "acme.y", "acme.z"].map((room) => step(room, follow));
  steps.adopt({ generation: 1, steps: follows });
  begun(steps);
  for (const one of follows) steps.settle(one, true);
  const byOther: PlanAction = { kind: "follow", by: b, instead: undefined };
  steps.adopt({ generation: 2, steps: [step("acme.x", follow), step("acme.y", byOther), step("acme.z", move), step("acme.w", move)] });
  expect(steps.takeUnchosenFollowers()).toEqual([
    ["acme.y", c],
    ["acme.z", c],
  ]);
  begun(steps);
  steps.settle(step("acme.w", move), true);
  steps.settle(step("acme.y", byOther), true);
  steps.adopt({ generation: 3, steps: [step("acme.y", move)] });
  begun(steps);
  steps.adopt({ generation: 4, steps: [] });
  expect(steps.takeUnchosenFollowers(), "acme.y is being moved").toEqual([]);
  steps.settle(step("acme.x", follow), false);
  steps.settle(step("acme.y", move), false);
  steps.adopt({ generation: 5, steps: [] });
  expect([steps.takeUnchosenFollowers(), steps.takeUnchosenFollowers()]).toEqual([[["acme.y", b]], []]);
});

test("[STEPS7] a replica waits for its owner's move while too many moves are in progress, and not for a move that the next plan drops", () => {
  const steps = new PlanSteps();
  steps.adopt({ generation: 1, steps: [...many(5, move), step("acme.move4", follow)] });
  expect(begun(steps)).toEqual([0, 1, 2, 3].map((room) => `move acme.move${room} 1`));
  steps.adopt({ generation: 2, steps: [step("acme.move4", follow)] });
  expect(begun(steps)).toEqual(["follow acme.move4 2"]);
});

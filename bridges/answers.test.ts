import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { Answers, type StateRequest } from "./answers.ts";

const question = (bytes: number): StateRequest => ({ kind: "sync-request", stateVector: new Uint8Array(bytes) });

function rig(answerBytes: number) {
  const clock = new FakeClock();
  const answered: StateRequest[] = [];
  const ask = (asked: StateRequest): void => {
    if (!answers.mayAnswer(asked)) return;
    answers.charge(asked, new Uint8Array(answerBytes));
    answered.push(asked);
  };
  const answers = new Answers({ burst: 100_000, perSecond: 10_000 }, clock, ask);
  return { clock, answers, answered, ask };
}

test("[YAN1] requests cost the size of their answers; above the limit only the newest request of each kind waits and is answered", () => {
  const { clock, answered, ask } = rig(130_000);
  ask(question(1));
  for (let bytes = 2; bytes <= 50; bytes++) ask(question(bytes));
  ask({ kind: "awareness-request" });
  expect(answered).toEqual([question(1)]);
  clock.turn(3_000);
  expect(answered).toHaveLength(1);
  clock.turn(1_000);
  expect(answered, "the other kind waits for its own turn").toEqual([question(1), question(50)]);
  clock.turn(15_000);
  expect(answered).toEqual([question(1), question(50), { kind: "awareness-request" }]);
  expect(clock.pending).toBe(0);
});

test("[YAN2] a small answer costs more than its bytes, and no request is answered after the stop", () => {
  const { clock, answers, answered, ask } = rig(2);
  for (let asked = 0; asked < 1_000; asked++) ask(question(1));
  expect(answered).toHaveLength(13);
  answers.stop();
  expect(clock.pending).toBe(0);
});

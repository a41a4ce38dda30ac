import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { Answers, type Question } from "./answers.ts";

const question = (bytes: number): Question => ({ kind: "sync-request", stateVector: new Uint8Array(bytes) });

function rig(answerBytes: number) {
  const clock = new FakeClock();
  const answered: Question[] = [];
  const ask = (asked: Question): void => {
    if (!answers.mayAnswer(asked)) return;
    answers.charge(asked, new Uint8Array(answerBytes));
    answered.push(asked);
  };
  const answers = new Answers({ burst: 100_000, perSecond: 10_000 }, clock, ask);
  return { clock, answers, answered, ask };
}

test("[YAN1] questions are charged by their answers, past that each kind waits once, and the newest is answered", () => {
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

test("[YAN2] very many small ones cost more than their bytes, and nothing is answered once it has stopped", () => {
  const { clock, answers, answered, ask } = rig(2);
  for (let asked = 0; asked < 1_000; asked++) ask(question(1));
  expect(answered).toHaveLength(98);
  answers.stop();
  expect(clock.pending).toBe(0);
});

import { expect, test } from "vitest";

import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { SharedAnswers } from "./shared-answers.ts";

const DOCUMENT = new Uint8Array(10).fill(7);

async function* inParts(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, 3);
  yield bytes.subarray(3);
}

/** A service that answers when the test decides. */
function service() {
  const waiting: ((answer: HttpAnswer | Error) => void)[] = [];
  return {
    asked: 0,
    fetch(): Promise<HttpAnswer | undefined> {
      this.asked += 1;
      return new Promise((resolve, reject) => waiting.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))));
    },
    answerNext(answer: HttpAnswer | Error): void {
      waiting.shift()!(answer);
    },
  };
}

const snapshot = (bytes = DOCUMENT): HttpAnswer => ({
  status: 200,
  headers: { etag: '"1-2"' },
  body: inParts(bytes),
  bodyBytes: bytes.byteLength,
});

test("[SNAP1] a thousand clients that ask at once cost one call, and get the same bytes", async () => {
  const clock = new FakeClock();
  const answers = new SharedAnswers({ sharedMs: 0, bytesMax: 100 }, clock);
  const documents = service();
  const asked = Array.from({ length: 1_000 }, () => answers.get("room", () => documents.fetch()));
  documents.answerNext(snapshot());

  for (const answer of await Promise.all(asked))
    expect(answer).toMatchObject({ status: 200, headers: { etag: '"1-2"' }, body: DOCUMENT, bodyBytes: 10 });
  expect(documents.asked).toBe(1);
});

test("[SNAP2] an answer is shared for its time after the request, and not longer", async () => {
  const clock = new FakeClock();
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 100 }, clock);
  const documents = service();
  const first = answers.get("room", () => documents.fetch());
  clock.turn(400);
  documents.answerNext(snapshot());
  await first;
  clock.turn(599);
  expect((await answers.get("room", () => documents.fetch()))?.body).toBe((await first)?.body);
  clock.turn(1);
  const later = answers.get("room", () => documents.fetch());
  documents.answerNext(snapshot());
  await later;
  expect(documents.asked).toBe(2);
});

test("[SNAP8] after its time an answer is shared while it is current and requested", async () => {
  const clock = new FakeClock();
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 100 }, clock);
  const documents = service();
  let isCurrent = true;
  const ask = (): Promise<HttpAnswer | undefined> =>
    answers.get(
      "room",
      () => documents.fetch(),
      () => isCurrent,
    );
  const anew = async (): Promise<void> => {
    const asked = ask();
    documents.answerNext(snapshot());
    await asked;
  };
  await anew();
  for (let second = 0; second < 5; second++) {
    await ask();
    clock.turn(1_000);
  }
  await ask();
  expect(documents.asked).toBe(1);

  isCurrent = false;
  clock.turn(1_000);
  await anew();
  expect(documents.asked, "no longer current").toBe(2);

  isCurrent = true;
  clock.turn(1_000);
  await anew();
  expect(documents.asked, "nobody asked for it").toBe(3);
});

test("[SNAP3] each key has a call and an answer of its own", async () => {
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 100 }, new FakeClock());
  const documents = service();
  const asked = [answers.get("room", () => documents.fetch()), answers.get("other", () => documents.fetch())];
  documents.answerNext(snapshot());
  documents.answerNext({ status: 304 });
  expect((await Promise.all(asked)).map((answer) => answer?.status)).toEqual([200, 304]);
});

test("[SNAP4] an answer above the bound is streamed to each client by itself, and is not held", async () => {
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 15 }, new FakeClock());
  const documents = service();
  const one = answers.get("one", () => documents.fetch());
  documents.answerNext(snapshot());
  await one;
  const two = answers.get("two", () => documents.fetch());
  const too = answers.get("two", () => documents.fetch());
  documents.answerNext(snapshot());
  const body = (await two)?.body;
  expect(body).not.toBeInstanceOf(Uint8Array);
  documents.answerNext(snapshot());
  expect((await too)?.status).toBe(200);
  expect(documents.asked).toBe(3);
});

test("[SNAP5] memory is released when an answer is forgotten and its readers have it", async () => {
  const clock = new FakeClock();
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 10 }, clock);
  const documents = service();
  for (const room of ["one", "two", "three"]) {
    const answer = answers.get(room, () => documents.fetch());
    documents.answerNext(snapshot());
    expect((await answer)?.body).toEqual(DOCUMENT);
    (await answer)?.onEnded?.();
    clock.turn(1_000);
  }
});

test("[SNAP7] a forgotten answer occupies memory until its last reader has it, and an answer that does not fit beside it is not held", async () => {
  const clock = new FakeClock();
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 15 }, clock);
  const documents = service();
  const ask = async (): Promise<HttpAnswer | undefined> => {
    const asked = answers.get("room", () => documents.fetch());
    documents.answerNext(snapshot());
    const answer = await asked;
    clock.turn(1_000); // The next request makes a call of its own.
    return answer;
  };
  const both = [answers.get("room", () => documents.fetch()), answers.get("room", () => documents.fetch())];
  documents.answerNext(snapshot());
  const [quick, slow] = await Promise.all(both);
  clock.turn(1_000);
  quick?.onEnded?.();
  quick?.onEnded?.();
  expect((await ask())?.body).not.toBeInstanceOf(Uint8Array);
  slow?.onEnded?.();
  expect((await ask())?.body).toBeInstanceOf(Uint8Array);
});

test("[SNAP6] an error goes to the clients that wait for it, and the next client causes a new call", async () => {
  const answers = new SharedAnswers({ sharedMs: 1_000, bytesMax: 100 }, new FakeClock());
  const documents = service();
  const refused = answers.get("room", () => documents.fetch());
  documents.answerNext({ status: 503, body: "" });
  expect((await refused)?.status).toBe(503);

  const both = [answers.get("room", () => documents.fetch()), answers.get("room", () => documents.fetch())];
  documents.answerNext(new Error("the connection broke"));
  for (const outcome of await Promise.allSettled(both)) expect(outcome.status).toBe("rejected");

  const cutShort = answers.get("room", () => documents.fetch());
  documents.answerNext({ ...snapshot(), body: inParts(DOCUMENT.subarray(0, 5)) });
  await expect(cutShort).rejects.toThrow(/broke off/);

  const last = answers.get("room", () => documents.fetch());
  documents.answerNext(snapshot());
  expect((await last)?.status).toBe(200);
  expect(documents.asked).toBe(4);
});

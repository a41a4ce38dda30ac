/** Boards that are read once, with answers like those of a gateway. */

import { expect, test } from "vitest";

import type { RoomId } from "../../shared/ids.ts";
import type { JsonAnswer } from "../ports.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import { Leaderboard } from "./leaderboard.ts";

const PAGE: JsonAnswer = {
  status: 200,
  body: {
    role: "everyone",
    window: { id: "2026-W47", kind: "week", start: 0, end: 1 },
    isArchived: true,
    asOf: { epoch: 1, seq: 9, time: 0, missing: 0 },
    members: 3,
    ranking: [
      { rank: 1, user: "ann", score: 5, name: "Ann" },
      { rank: 2, user: "bob", score: 3, name: "" },
      { rank: 3, user: "cy", score: 1, name: "" },
    ],
  },
};
const own = (place: object): JsonAnswer => ({ status: 200, body: { own: place } });
const refusal = (status: number, error: string): JsonAnswer => ({ status, body: { error, message: `about ${error}` } });

/** Answers are given in turn. */
function boardsOf(...answers: (JsonAnswer | Error)[]): { boards: Leaderboard; asked: string[] } {
  const server = new ModelServer(new ClientFakeClock());
  const token = () => Promise.resolve("t");
  const room = new RoomConnection({ url: "wss://h/coroom/", token, room: "no/tes" as RoomId, connect: false }, server.world());
  const asked: string[] = [];
  const fetchJson = (url: string, bearer: string): Promise<JsonAnswer> => {
    asked.push(`${bearer} ${url}`);
    const answer = answers.shift()!;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { boards: room.part((inner, world, connection) => new Leaderboard(inner, { ...world, fetchJson }, connection)), asked };
}

test("[LBO11] a window is read once over HTTP at the server's path: the first places, and the own place in the same window", async () => {
  const { boards, asked } = boardsOf(PAGE, own({ rank: 3, score: 1 }));
  expect(await boards.read({ window: "last-week", role: "editors", shown: 2 })).toEqual({
    role: "editors",
    windowId: "2026-W47",
    ranking: [
      { rank: 1, user: "ann", name: "Ann", score: 5 },
      { rank: 2, user: "bob", name: "bob", score: 3 },
    ],
    own: { rank: 3, score: 1 },
    members: 3,
    seq: 9,
    isFinal: true,
  });
  expect(asked).toEqual([
    "t https://h/coroom/v1/rooms/no%2Ftes/leaderboard?window=last-week&role=editors",
    "t https://h/coroom/v1/rooms/no%2Ftes/leaderboard/me?around=0&window=2026-W47&role=editors",
  ]);
});

test.each([
  [refusal(404, "not-ranked"), { rank: 0, score: 0 }],
  [refusal(404, "beyond-archive"), undefined],
  [own({ rankFirst: 7, rankLast: 9, score: 4 }), { rank: 0, score: 4 }],
])("[LBO12] the own place of the answer %j is %j", async (answer, place) => {
  expect((await boardsOf(PAGE, answer).boards.read({ window: "2026-W47" })).own).toEqual(place);
});

test.each(["unknown-window", "unknown-room"])(
  "[LBO9] a window without points (%s) is an empty board that may still change",
  async (error) => {
    expect(await boardsOf(refusal(404, error)).boards.read({ window: "last-month" })).toMatchObject({
      windowId: "",
      ranking: [],
      own: { rank: 0, score: 0 },
      isFinal: false,
    });
  },
);

test("[LBO10] a board that cannot be read rejects with the server's message, and a wrong option throws", async () => {
  const read = (...answers: (JsonAnswer | Error)[]) => boardsOf(...answers).boards.read({ window: "last-week" });
  await expect(read(refusal(400, "unknown-window"))).rejects.toThrow("cannot read the board: about unknown-window (HTTP 400)");
  await expect(read(refusal(404, "unknown-role"))).rejects.toThrow("about unknown-role (HTTP 404)");
  await expect(read(PAGE, refusal(429, "rate-limited"))).rejects.toThrow("about rate-limited (HTTP 429)");
  await expect(read({ status: 502, body: undefined })).rejects.toThrow("the answer is not from Coroom (HTTP 502)");
  await expect(read({ status: 200, body: undefined })).rejects.toThrow("the answer is not from Coroom (HTTP 200)");
  await expect(read(new TypeError("Failed to fetch"))).rejects.toThrow("the server does not answer. Check the network");
  const { boards, asked } = boardsOf();
  expect(() => boards.read({ window: "last-week", shown: 0 })).toThrow(/whole number/);
  expect(() => boards.read({ window: "last-week", role: "boss" as "editors" })).toThrow(/role must be one of/);
  expect(() => boards.read({} as { window: "last-week" })).toThrow(/window must be a text/);
  expect(asked).toEqual([]);
});

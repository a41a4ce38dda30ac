/** A watched board of a tenant, with answers like those of a gateway. */

import { expect, onTestFinished, test } from "vitest";

import type { ClientKey } from "../../shared/ids.ts";
import type { JsonAnswer, NetworkChange } from "../ports.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { type TenantBoardOptions, WatchedTenantBoard } from "./tenant-board-host.ts";

const page = (names: readonly string[], more: object = {}): JsonAnswer => ({
  status: 200,
  body: {
    window: { id: "2026-11-25" },
    isBehind: false,
    members: names.length,
    points: 9,
    ranking: names.map((name, index) => ({ rank: index + 1, user: name.toLowerCase(), name, score: 9 - index })),
    ...more,
  },
  etag: `W/"${names.join()}"`,
  maxAgeMs: 5_000,
});
const unchanged: JsonAnswer = { status: 304, body: undefined, maxAgeMs: 5_000 };
const refusal = (status: number, error: string, retryAfterMs = 0): JsonAnswer => ({
  status,
  body: { error, message: `about ${error}` },
  retryAfterMs,
});

/** `unit`: the random part of each wait. `answer` is given to each request until the test changes it. */
function watched(options: Partial<TenantBoardOptions> = {}, { unit = 0 } = {}) {
  const clock = new ClientFakeClock();
  const start = clock.now();
  const requests: string[] = [];
  const server = { answer: page(["Ann"]) as JsonAnswer | Error };
  let report: { visible: (isVisible: boolean) => void; network: (change: NetworkChange) => void };
  const ports = { isWatching: true };
  const fetchJson = (url: string, token: string, etag = ""): Promise<JsonAnswer> => {
    requests.push(`${(clock.now() - start) / 1000} s ${token} ${etag}`.trimEnd());
    if (requests.length === 1) expect(url).toBe(firstUrl);
    return server.answer instanceof Error ? Promise.reject(server.answer) : Promise.resolve(server.answer);
  };
  const { board: ranks = "people", window = "all", role = "everyone", shown = 10 } = options;
  const firstUrl = `https://h/coroom/v1/leaderboard/${ranks}?window=${window}&role=${role}&limit=${shown}`;
  const end = (): void => void (ports.isWatching = false);
  const board = new WatchedTenantBoard(
    { url: "wss://h/coroom/", token: () => "t.o.k", board: "people", ...options },
    {
      clock,
      chance: { unit: () => unit, clientKey: () => "" as ClientKey },
      reportError: (error) => expect.unreachable(String(error)),
      fetchJson,
      watchVisibility: (visible) => ((report = { ...report, visible }), end),
      watchNetwork: (network) => ((report = { ...report, network }), end),
    },
  );
  onTestFinished(() => board.stop());
  const changes: string[] = [];
  board.on("change", ({ state, ranking, error }) => {
    const places = (ranking as readonly { name?: string; room?: string }[]).map(({ name, room }) => name ?? room);
    changes.push(`${state} ${places.join()}${error === undefined ? "" : ` (${error.message})`}`);
  });
  return { board, clock, requests, changes, server, ports, report: report! };
}

test("[TWB1] a board is requested at the server's interval with jitter, and an unchanged one only by its ETag", async () => {
  const { board, clock, requests, changes, server } = watched({ window: "day", role: "editors", shown: 2 }, { unit: 0.5 });
  expect([board.state, board.ranking, board.windowId]).toEqual(["waiting", [], ""]);
  await clock.advance(1);
  server.answer = unchanged;
  await clock.advance(13_000);
  server.answer = page(["Bob", "Ann", "Cy"]);
  await clock.advance(6_250);
  expect(requests).toEqual(["0 s t.o.k", '6.25 s t.o.k W/"Ann"', '12.5 s t.o.k W/"Ann"', '18.75 s t.o.k W/"Ann"']);
  expect(changes).toEqual(["live Ann", "live Bob,Ann"]);
  expect([board.windowId, board.members, board.points]).toEqual(["2026-11-25", 3, 9]);
  expect(board.ranking[0]).toEqual({ rank: 1, user: "bob", name: "Bob", score: 9 });
  server.answer = page(["Bob", "Ann", "Cy"], { isBehind: true });
  await clock.advance(6_250);
  expect(changes.at(-1)).toBe("behind Bob,Ann");
});

test("[TWB2] a hidden page requests nothing, and a page that is shown again at once what is due", async () => {
  const { clock, requests, report } = watched();
  await clock.advance(1);
  report.visible(false);
  await clock.advance(3_600_000);
  expect(requests).toEqual(["0 s t.o.k"]);
  report.visible(true);
  await clock.advance(0);
  expect(requests).toHaveLength(2);
  report.visible(false);
  report.visible(true);
  await clock.advance(4_000);
  expect(requests, "not due").toHaveLength(2);
  await clock.advance(1_001);
  expect(requests).toHaveLength(3);
});

test("[TWB3] a stopped board requests and reports nothing, also while an answer is on its way", async () => {
  const { board, clock, requests, changes, ports, server } = watched();
  await clock.advance(1);
  server.answer = page(["Bob"]);
  clock.turn(5_000);
  board.stop();
  await clock.advance(60_000);
  expect([requests.length, changes, ports.isWatching]).toEqual([2, ["live Ann"], false]);
  const early = watched();
  early.board.stop(); // While the application's token function runs.
  await early.clock.advance(60_000);
  expect(early.requests).toEqual([]);
  expect(clock.pending, "timers").toBe(0);
});

test("[TWB4] after refusals the waits grow up to a minute, and no request comes before the server's retry-after", async () => {
  const { clock, requests, changes, server } = watched({}, { unit: 0.5 });
  await clock.advance(1);
  server.answer = refusal(503, "no-leaderboard", 5_000);
  await clock.advance(400_000);
  const times = requests.map((request) => Number.parseFloat(request));
  const waits = times.slice(2).map((time, index) => time - times[index + 1]!);
  expect(waits.slice(0, 7)).toEqual([6.25, 6.25, 10, 20, 40, 75, 75]);
  expect(changes).toEqual(["live Ann", "behind Ann (cannot read the board: about no-leaderboard (HTTP 503))"]);

  server.answer = unchanged;
  await clock.advance(75_000);
  expect(changes.at(-1)).toBe("live Ann");
  server.answer = refusal(429, "rate-limited", 120_000);
  const before = requests.length;
  await clock.advance(7_000);
  expect(requests).toHaveLength(before + 1);
  await clock.advance(140_000);
  expect(requests).toHaveLength(before + 1);
  await clock.advance(10_000);
  expect(requests).toHaveLength(before + 2);
});

test("[TWB4] until something was read the board is unavailable, and a proxy's answer does not stop it", async () => {
  const { clock, changes, server } = watched();
  server.answer = { status: 404, body: undefined };
  await clock.advance(1);
  server.answer = refusal(503, "rebuilding", 1_000);
  await clock.advance(2_000);
  server.answer = page(["Ann"]);
  await clock.advance(4_000);
  expect(changes).toEqual([
    "unavailable  (cannot read the board: the answer is not from Coroom (HTTP 404))",
    "unavailable  (cannot read the board: about rebuilding (HTTP 503))",
    "live Ann",
  ]);
});

test("[TWB5] the token function is called again when the token is refused, and not for each request", async () => {
  let tokens = 0;
  const { board, clock, requests, server } = watched({ token: async () => `t.o.${(tokens += 1)}` });
  await clock.advance(20_000);
  expect([tokens, requests.length]).toEqual([1, 5]);
  server.answer = refusal(401, "token-expired");
  await clock.advance(5_000);
  expect(requests.slice(-2).map((request) => request.split(" ")[2])).toEqual(["t.o.1", "t.o.2"]);
  expect([board.state, tokens], "a new token that has expired is followed by a later one").toEqual(["behind", 2]);
  server.answer = page(["Ann", "Bob"]);
  await clock.advance(2_000);
  expect([board.state, tokens, board.members]).toEqual(["live", 3, 2]);

  const fixed = watched({ token: "fixed" });
  await fixed.clock.advance(1);
  fixed.server.answer = refusal(401, "token-expired");
  await fixed.clock.advance(60_000);
  expect([fixed.requests.length, fixed.board.state]).toEqual([3, "stopped"]);
});

test.each([
  [403, "not-allowed"],
  [401, "token-refused"],
  [400, "bad-limit"],
  [404, "unknown-role"],
])("[TWB6] a refusal %i %s stops the board with the server's message, and shows no content any more", async (status, error) => {
  let tokens = 0;
  const { board, clock, requests, changes, server } = watched({ token: () => `t.o.${(tokens += 1)}` });
  await clock.advance(1);
  server.answer = refusal(status, error);
  await clock.advance(600_000);
  expect(changes).toEqual(["live Ann", `stopped  (cannot read the board: about ${error} (HTTP ${status}))`]);
  expect([board.ranking, board.members, board.windowId]).toEqual([[], 0, ""]);
  const isOfToken = status === 401 || status === 403;
  expect([requests.length, tokens]).toEqual(isOfToken ? [3, 2] : [2, 1]); // A new token may have the right.
});

test("[TWB7] a window in which nothing was counted is an empty live board, and rooms are ranked as the server sends them", async () => {
  const { board, clock, server } = watched({ board: "rooms" });
  server.answer = refusal(404, "unknown-window");
  await clock.advance(1);
  expect([board.state, board.ranking]).toEqual(["live", []]);
  const first = watched({ window: "last-hour" });
  await first.clock.advance(1);
  first.server.answer = refusal(404, "unknown-window");
  await first.clock.advance(5_000);
  expect([first.board.state, first.board.ranking, first.board.windowId, first.board.error]).toEqual(["live", [], "", undefined]);
  await first.clock.advance(10_000);
  expect(first.requests.at(-1), "without the ETag of the page before").toBe("15 s t.o.k");

  const ranking = [{ rank: 1, room: "notes", points: 7 }];
  server.answer = page([], { members: undefined, rooms: 4, people: 6, ranking });
  await clock.advance(10_000);
  expect([board.ranking, board.members, board.state]).toEqual([ranking, 4, "live"]);
});

test("[TWB8] the network's return ends a wait for an unreachable server, and not one that the server asked for", async () => {
  const { clock, requests, changes, server, report } = watched();
  await clock.advance(1);
  server.answer = new TypeError("Failed to fetch");
  await clock.advance(30_000);
  expect(changes.at(-1)).toMatch(/^behind Ann \(cannot read the board: the server does not answer\. Check the network/);
  const failed = requests.length;
  report.network("doubtful");
  await clock.advance(0);
  expect(requests).toHaveLength(failed);
  server.answer = refusal(503, "rebuilding", 600_000);
  report.network("back");
  await clock.advance(0);
  expect(requests).toHaveLength(failed + 1);
  report.network("back");
  await clock.advance(599_000);
  expect(requests).toHaveLength(failed + 1);
});

test("[TWB9] a token function that fails or hangs is called again later, and a wrong option throws", async () => {
  let calls = 0;
  const token = (): Promise<string> => {
    calls += 1;
    if (calls === 1) return Promise.reject(new Error("HTTP 500"));
    return calls === 2 ? new Promise(() => {}) : Promise.resolve("t.o.k");
  };
  const { clock, requests, changes } = watched({ token });
  await clock.advance(1_999);
  expect(changes).toEqual([
    "unavailable  (cannot read the board: the application's token function failed: HTTP 500; it is called again later)",
  ]);
  await clock.advance(32_000);
  expect(changes.at(-1)).toContain("took longer than 30 s");
  await clock.advance(4_000);
  expect([requests.length, changes.at(-1)]).toEqual([1, "live Ann"]);

  expect(() => watched({ shown: 0 })).toThrow(/whole number/);
  expect(() => watched({ role: "boss" as "editors" })).toThrow(/role must be one of/);
  expect(() => watched({ board: "teams" as "rooms" })).toThrow(/board must be people or rooms/);
  expect(() => watched({ token: "" })).toThrow(/`token` must be a JWT/);
  expect(() => watched({ url: "h" })).toThrow(/url must look like/);
});

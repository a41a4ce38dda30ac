// @vitest-environment happy-dom
/** Components that show a tenant's boards, under StrictMode, with answers like those of a gateway. */

import { createElement as h, type ReactNode, StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";

import { eventually } from "../test/system/eventually.ts";
import { CoroomProvider, useTenantBoard } from "./index.ts";
import { endTimersWithFile, MountedTree, type ServedRooms, serveRooms } from "./testing/served-rooms.ts";

const PEOPLE = "/v1/leaderboard/people?window=day&role=everyone&limit=2";
const ROOMS = "/v1/leaderboard/rooms?window=all&role=editors&limit=10";
/** Without no-store, happy-dom would repeat an answer with an ETag forever. */
const OFTEN = { "cache-control": "private, no-store, max-age=1", "access-control-expose-headers": "etag" };

endTimersWithFile();
let served: ServedRooms;
beforeEach(async () => {
  served = await serveRooms();
});
afterEach(() => served.stop());

const inProvider = (...children: ReactNode[]): ReactNode =>
  h(StrictMode, null, h(CoroomProvider, { url: served.url, token: () => "t.o.k" }, ...children));

function People(): ReactNode {
  const { ranking, state, windowId, members, error } = useTenantBoard({ board: "people", window: "day", shown: 2 });
  return `${state} ${windowId} ${ranking.map(({ rank, name, score }) => `${rank}. ${name} ${score}`).join()} of ${members}${error ? `: ${error.message}` : ""}`;
}

function Rooms(): ReactNode {
  const { ranking, points } = useTenantBoard({ board: "rooms", role: "editors" });
  return ` ${ranking.map((place) => `${place.rank}. ${place.room} ${place.points}`).join()} of ${points}`;
}

function serveBoards(score: number): void {
  const about = { window: { id: "2026-11-25" }, isBehind: false, points: 12 };
  const people = [{ rank: 1, user: "ada", name: "Ada", score }];
  served.http.set(PEOPLE, { status: 200, body: { ...about, members: 1, ranking: people }, headers: { ...OFTEN, etag: `W/"${score}"` } });
  const rooms = [{ rank: 1, room: "notes", points: 12 }];
  served.http.set(ROOMS, { status: 200, body: { ...about, rooms: 1, people: 1, ranking: rooms }, headers: OFTEN });
}

test("[HOOK18] people and rooms of the tenant are shown and kept up to date until the last component is unmounted", async () => {
  serveBoards(9);
  const tree = new MountedTree(inProvider(h(People), h(Rooms)));
  onTestFinished(() => tree.unmount());
  await eventually("both boards are shown", () => tree.text === "live 2026-11-25 1. Ada 9 of 1 1. notes 12 of 12");
  serveBoards(10);
  await eventually("the new score is shown", () => tree.text.startsWith("live 2026-11-25 1. Ada 10 of 1"));
  expect(served.model.connections.size, "a board needs no room").toBe(0);

  const count = (path: string): number => served.requests.filter((url) => url === path).length;
  tree.show(inProvider(h(Rooms)));
  await eventually("only rooms are shown", () => tree.text === " 1. notes 12 of 12");
  const [people, rooms] = [count(PEOPLE), count(ROOMS)];
  await eventually("rooms are requested again", () => count(ROOMS) >= rooms + 2);
  expect(count(PEOPLE)).toBeLessThanOrEqual(people + 1); // A request may have been on its way.
});

test("[HOOK19] without the right the board is stopped with the reason, and a server renders nothing", async () => {
  const message = "the token does not open the boards of the tenant";
  served.http.set(PEOPLE, { status: 403, body: { error: "not-allowed", message } });
  expect(renderToString(inProvider(h(People)))).toBe("waiting   of 0");
  expect(served.requests).toEqual([]);
  const tree = new MountedTree(inProvider(h(People)));
  onTestFinished(() => tree.unmount());
  await eventually("it is stopped", () => tree.text === `stopped   of 0: cannot read the board: ${message} (HTTP 403)`);
  expect(() => renderToString(h(People))).toThrow("need a <CoroomProvider");
});

/** With several leaderboards, only the one that counts a watched board publishes it, and only after a change. */

import { expect, test } from "vitest";

import { eventually } from "../../test/system/eventually.ts";
import { appliedOf, LeaderboardRig, MINUTE_MS, NEW_YEARS_EVE, ROOMS, SetClock, USERS } from "../testing/leaderboard-rig.ts";
import { FakeEditLog } from "../testing/fake-edit-log.ts";

const rig = LeaderboardRig.forThisFile();

test("[LB6] a watched board is published after a change, at most once in the push interval, by the leaderboard that counts it", async () => {
  const [log, clock] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE)];
  // The first counter keeps its lease to the end: a takeover, for example after a pause of the machine, also causes a publication.
  const flags = { boardPushMs: "200", boardWatchMs: "3600000", boardsLeaseMs: String(24 * 60 * MINUTE_MS) };
  const [first, second] = [await rig.start("lb6", log, clock, flags), await rig.start("lb6", log, clock, flags)];
  const room = ROOMS[0]!;
  const all = () => [...first.shown, ...second.shown];
  const watch = () => [first, second].forEach(({ host }) => host.receiveWatch({ room, role: "everyone", window: "day", isNew: false }));
  log.append(room, [{ user: USERS[0]!, bytes: 1, time: clock.wallNow() }]);
  watch();
  await eventually("the first state is published", () => all().at(-1)?.seq === 1);
  expect(all().at(-1)).toMatchObject({ room, window: "day", windowId: "2028-12-31", seq: 1, members: 1, ranking: [["ann", 1, ""]] });
  const begin = performance.now();
  for (let edit = 0; edit < 100; edit++) {
    log.append(room, [{ user: USERS[edit % 2]!, bytes: 1, time: clock.wallNow() }]);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await eventually(
    "the last state is published",
    () =>
      all()
        .at(-1)
        ?.ranking.every(([, score]) => score === 20) === true,
  );
  expect(all().length).toBeLessThanOrEqual(3 + (performance.now() - begin) / 200);
  const count = all().length;
  // Above the cap no points are added: the entry is counted, and nothing is published.
  for (const user of USERS.slice(0, 2)) log.append(room, [{ user, bytes: 1, time: clock.wallNow() }]);
  await eventually("all is counted", async () => appliedOf(await first.ports.boards.load(room)).seq === 103);
  await new Promise((resolve) => setTimeout(resolve, 400)); // Twice the push interval. No publication may arrive in this time.
  expect(all().length).toBe(count);
  clock.advance(30 * MINUTE_MS);
  await eventually("another day begins for those who watch", () => all().at(-1)?.windowId === "2029-01-01");
  // After the clock was set ahead, the counter is behind for a moment and then current again.
  expect(all().length).toBeLessThanOrEqual(count + 2);
});

test("[LB22] a watcher behind the ranked members is sent its exact rank and score after each change, with and without an ordered tail", async () => {
  for (const boardTail of ["counted", "ordered"]) {
    const [log, clock] = [new FakeEditLog(1), new SetClock(NEW_YEARS_EVE)];
    const flags = { boardPushMs: "200", boardShownMax: "1", boardTail, ...(boardTail === "ordered" ? { boardReadMembersMax: "2" } : {}) };
    const { host, shown } = await rig.start(`lb60-${boardTail}`, log, clock, flags);
    const [room, users] = [ROOMS[0]!, USERS.slice(0, 4)];
    const edits = (user: (typeof USERS)[number], count: number) => {
      for (let edit = 0; edit < count; edit++) log.append(room, [{ user, bytes: 1, time: clock.wallNow() }]);
    };
    users.forEach((user, index) => edits(user, 10 - 2 * index));
    const watch = (sought: readonly string[]) =>
      host.receiveWatch({ room, role: "everyone", window: "day", isNew: true, sought: [...sought] });
    watch([users[3]!, "nobody"]);
    const own = () => JSON.stringify(shown.findLast(({ kind }) => kind === "shown")?.own);
    await eventually(
      "the last of four is sent its place",
      () =>
        own() ===
          JSON.stringify([
            ["nobody", 0, 0],
            [users[3], 4, 4],
          ]) ||
        own() ===
          JSON.stringify([
            [users[3], 4, 4],
            ["nobody", 0, 0],
          ]),
    );
    edits(users[3]!, 1);
    await eventually("its score is sent", () => own()?.includes(`["${users[3]}",4,5]`) === true);
    edits(users[3]!, 2);
    await eventually("it has overtaken another", () => own()?.includes(`["${users[3]}",3,7]`) === true);
  }
});

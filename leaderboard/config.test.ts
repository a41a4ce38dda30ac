import { deflateRawSync } from "node:zlib";

import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { parseUserId } from "../shared/ids.ts";
import { Prng } from "../shared/collections/prng.ts";
import { ARCHIVED_MEMBER_BYTES, leaderboardSettings, refuseUnarchivable, SHOWN_MEMBERS_MAX } from "./config.ts";

const NATS_DEFAULT_MAX_PAYLOAD = 1_048_576;

test("[LCF1] a leaderboard does not start if NATS would reject its archived windows, and the error names the remedy", () => {
  const read = (flags: Record<string, string>) => readSettings(leaderboardSettings, { flags, env: {} });
  refuseUnarchivable(read({}), NATS_DEFAULT_MAX_PAYLOAD);
  refuseUnarchivable(read({ boardRoles: "everyone,editors,commenters" }), NATS_DEFAULT_MAX_PAYLOAD);
  refuseUnarchivable(read({ boardArchivedMax: "1000000" }), undefined);
  const raised = read({ boardArchivedMax: "2000", boardRoles: "everyone,editors" });
  expect(() => refuseUnarchivable(raised, NATS_DEFAULT_MAX_PAYLOAD)).toThrow(SettingError);
  expect(() => refuseUnarchivable(raised, NATS_DEFAULT_MAX_PAYLOAD)).toThrow(/max_payload.*COROOM_BOARD_ARCHIVED_MAX/);
  refuseUnarchivable(raised, 2 * NATS_DEFAULT_MAX_PAYLOAD);
});

test("[LCF3] a board shows at most as many members as leave a tenant's boards in order", () => {
  const read = (boardShownMax: string) => readSettings(leaderboardSettings, { flags: { boardShownMax }, env: {} }).boardShownMax;
  expect([read("1"), read(String(SHOWN_MEMBERS_MAX))]).toEqual([1, SHOWN_MEMBERS_MAX]);
  for (const bad of ["0", "-1", "1.5", "many", String(SHOWN_MEMBERS_MAX + 1)]) {
    expect(() => read(bad), bad).toThrow(/--board-shown-max=.* must be a whole number, 1 to 2000/);
  }
});

test("[LCF4] a board always has the window of all time, and windows are kept shortest first", () => {
  const read = (boardWindows: string) => readSettings(leaderboardSettings, { flags: { boardWindows }, env: {} }).boardWindows;
  expect([read("all"), read("all, month,day")]).toEqual([["all"], ["day", "month", "all"]]);
  for (const bad of ["month", "all,decade", "all,last-week"])
    expect(() => read(bad), bad).toThrow(/--board-windows=.* must name windows, among them all: hour, day/);
});

test("[LCF2] no archived window is larger than the estimate allows", () => {
  const MEMBERS = 1_000;
  const random = new Prng(1);
  /** Any character of three bytes that is not a surrogate. */
  const character = () => {
    const drawn = 0x0800 + random.below(0xf000);
    return drawn < 0xd800 ? drawn : drawn + 0x0800;
  };
  const user = () => String.fromCharCode(...Array.from({ length: 128 }, character));
  expect(parseUserId(user())).toBeDefined();
  const standings = Array.from({ length: MEMBERS }, () => [user(), random.below(Number.MAX_SAFE_INTEGER), random.below(1e13)]);
  expect(deflateRawSync(JSON.stringify(standings)).byteLength / MEMBERS).toBeLessThan(ARCHIVED_MEMBER_BYTES);
});

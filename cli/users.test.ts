import { expect, test } from "vitest";

import { NATS_ROLES } from "../shared/bus/permissions.ts";
import { natsUsersText, newSecretsText, redisUsersText } from "./users.ts";

test("[USR1] coroom secrets prints a different value for each variable that the printed users read", () => {
  const printed = new Map(
    newSecretsText()
      .split("\n")
      .map((line) => line.split("=") as [string, string]),
  );
  const users = `${natsUsersText({ environment: "staging", logPartitions: 2 })}\n${redisUsersText({ environment: "staging" })}`;
  const read = [...users.matchAll(/\$((?:NATS|REDIS)_\w+)/g)].map(([, name]) => name!);
  expect(read).toHaveLength(NATS_ROLES.length + 2);
  expect(read.filter((name) => !printed.has(name))).toEqual([]);
  expect(new Set(printed.values()).size).toBe(printed.size);
  for (const value of printed.values()) expect(value).toMatch(/^s[0-9a-f]{48}$/);
});

test("[USR2] the printed users are those of the given environment and partitions", () => {
  const text = natsUsersText({ environment: "staging", logPartitions: 2 });
  expect(text).toContain('"$JS.API.STREAM.MSG.GET.staging_log_1"');
  expect(text).not.toMatch(/staging_log_2|production|development/);
  expect(redisUsersText({ environment: "staging" })).toMatch(
    /^user gateway on >\$REDIS_GATEWAY_PASSWORD ~staging:sanctions ~staging:usage:\* -@all /m,
  );
});

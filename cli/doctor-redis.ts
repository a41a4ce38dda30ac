/** The part of `coroom doctor` that examines Redis. It changes nothing there. */

import { type Cluster, type Redis, ReplyError } from "ioredis";

import { askRedis, FULL, redisConnection } from "../shared/io/redis.ts";
import type { Log } from "../shared/process/log.ts";
import { REDIS_ROLES, redisPermissions } from "../shared/settings/redis-permissions.ts";
import { type DoctorFinding, judgeRedis, problem } from "./findings.ts";
import { localRedisUrl } from "./local-addresses.ts";
import type { StartConfig } from "./settings.ts";

const ANSWER_MS_MAX = 3_000;
/** Findings are printed instead. */
const NO_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function checkRedis(config: StartConfig): Promise<readonly DoctorFinding[]> {
  const urls = config.redisUrl === "" ? localRedisUrl(config.dataDir) : config.redisUrl;
  if (urls === undefined) return [];
  const { redis, obstacle, receiveCheck, stop } = redisConnection(urls, NO_LOG);
  try {
    await new Promise<void>((resolved, refused) => {
      const timer = setTimeout(() => refused(new Error("no answer")), ANSWER_MS_MAX);
      redis.once("ready", () => (clearTimeout(timer), resolved()));
      redis.once("error", (error: Error) => (clearTimeout(timer), refused(error)));
    });
    const found = await askRedis(redis);
    if (found === "full") return [problem("Redis", FULL)];
    receiveCheck(found);
    const unusable = obstacle();
    if (unusable !== undefined) return [problem("Redis", unusable)];
    const denied = await deniedCommands(redis, config);
    if (denied.length > 0) return denied;
    const info = await redis.info().catch(() => ""); // The user of a role may not ask.
    const read = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
    const aof = read("aof_enabled");
    return [judgeRedis(read("redis_version"), read("maxmemory_policy"), aof === undefined ? undefined : aof === "1")];
  } catch (error) {
    const unfit = obstacle();
    if (unfit !== undefined) return [problem("Redis", unfit)];
    const why = error instanceof Error ? error.message : "";
    return [problem("Redis", `does not answer (${why}): boards and new bans are not stored. Start it, or set COROOM_REDIS_URL`)];
  } finally {
    stop();
  }
}

/** A command of each category. */
const EXAMPLES: Readonly<Record<string, string>> = { "@hash": "hset", "@sortedset": "zadd" };
/** Redis asks itself whether its user may run a command, and runs none. Redis before 7.0 cannot: it names no command. */
const DENIED = `local denied = {}
if not redis.acl_check_cmd then return denied end
for _, command in ipairs(cjson.decode(ARGV[1])) do
  if not redis.acl_check_cmd(unpack(command)) then denied[#denied + 1] = command[1] .. " " .. command[2] end
end
return denied`;

/** Commands of the process's roles that an ACL file of an earlier release lacks. A local system writes its file at each start. */
async function deniedCommands(redis: Redis | Cluster, { roles, redisUrl, environment }: StartConfig): Promise<readonly DoctorFinding[]> {
  const found: DoctorFinding[] = [];
  for (const role of redisUrl === "" ? [] : REDIS_ROLES.filter((each) => roles.includes(each))) {
    const { keys, commands } = redisPermissions(role, environment);
    const key = keys[0]!.replace("*", "doctor");
    const asked = commands.map((name): readonly string[] => {
      const [command = "", part] = (EXAMPLES[name] ?? name).split("|");
      if (part !== undefined) return [command, part, "coroom"];
      return command.startsWith("eval") ? [command, "return 1", "0"] : [command, key];
    });
    const denied = await redis.eval(DENIED, 0, JSON.stringify(asked)).catch((error: unknown) => {
      if (error instanceof ReplyError) return [`eval (${(error as Error).message})`];
      throw error;
    });
    if (Array.isArray(denied) && denied.length > 0) {
      const names = denied.map((each) => String(each).replace(` ${key}`, "").replace(" return 1", "")).join(", ");
      const remedy =
        "Print the users again with coroom redis-users, replace the ACL file (aclfile in redis.conf), and run ACL LOAD in Redis";
      found.push(problem("Redis", `does not allow commands that ${role} needs in ${environment} (${names}). ${remedy}`));
    }
  }
  return found;
}

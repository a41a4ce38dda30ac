/**
 * `deploy/compose.yaml` starts roles with valid settings and sufficient stop timeouts, and Prometheus scrapes all
 * processes.
 */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

import { REDIS_ROLES } from "../shared/settings/redis-permissions.ts";
import { type Role, startSettings } from "../cli/settings.ts";
import { newSecretsText, natsUsersText } from "../cli/users.ts";
import { REDIS_DEFAULT_USER, redisUserLine } from "../engines/redis-server.ts";
import { finalStage, imageEnvironment } from "./image.ts";
import { configOf, DEPLOYED_ROLES, drainMsOf, portOf, secretVariables, settingsOf } from "./role-settings.ts";

type Service = {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: unknown;
  readonly stop_grace_period: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
};

const ENDING_MS_MAX = 5_000;
const TEXT = readFileSync("deploy/compose.yaml", "utf8");
const SECRETS = newSecretsText();
const example = `${readFileSync("deploy/example.env", "utf8")}\n${SECRETS}`;

/** As the first lines of the file make it. */
const given = Object.fromEntries([...example.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]));
/** Substitutes variables like compose, in parsed values, because an empty variable must not change the structure of the file. */
const filledIn = (text: string): string =>
  text.replaceAll(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, kind: string, otherwise: string) => given[name] ?? (kind === "-" ? otherwise : `${name} is not in example.env`),
  );
const { services, volumes } = parse(TEXT, (_, value: unknown) => (typeof value === "string" ? filledIn(value) : value), {
  merge: true,
}) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};

const DEFAULT_COMMAND = JSON.parse(/^CMD (.*)$/m.exec(finalStage.text)![1]!) as readonly string[];
const processes = Object.entries(services)
  .filter(([, { image }]) => image === "coroom")
  .map(([name, service]) => {
    const [command, flag, roles] = service.command ?? DEFAULT_COMMAND;
    expect([command, flag]).toEqual(["start", "--roles"]);
    const [role] = startSettings.roles.parse(roles!) as [Role];
    return { name, role, service, env: { ...imageEnvironment(), ...asText(service.environment ?? {}) } };
  });

test("[DEP6] the compose file has two processes per role, a probe, three nats-servers, and a room server for hot rooms", () => {
  const count = (role: Role): number => processes.filter((process) => process.role === role).length;
  const roles = DEPLOYED_ROLES.filter((role) => role !== "y-websocket");
  const counts: Partial<Record<Role, number>> = { "probe": 1, "room-server": 3 };
  expect(roles.map((role) => [role, count(role)])).toEqual(roles.map((role) => [role, counts[role] ?? 2]));
  const pools = processes.filter(({ role }) => role === "room-server").map(({ env }) => env["COROOM_SERVER_POOL"] ?? "");
  expect(pools).toEqual(["", "", "dedicated"]);
  expect(Object.keys(services).filter((name) => name.startsWith("nats"))).toEqual(["nats-1", "nats-2", "nats-3"]);
});

test.each(processes)("[DEP7] $name gets only settings that it reads, and can start with them", async ({ role, service, env }) => {
  const settings = settingsOf(role);
  expect(Object.keys(service.environment ?? {}).filter((name) => !settings.has(name))).toEqual([]);
  const config = await configOf(role, env);
  expect([config.healthHost, config.healthPort]).toEqual(["0.0.0.0", 8090]);
  for (const port of service.ports ?? []) expect(port.endsWith(`:${portOf(role, config)}`)).toBe(true);
});

test.each(processes)("[DEP8] $name gets enough time to stop, and no unnecessary privilege", async ({ role, service, env }) => {
  const graceMs = Number(/^(\d+)s$/.exec(service.stop_grace_period)![1]) * 1_000;
  expect(graceMs).toBeGreaterThanOrEqual(drainMsOf(role, await configOf(role, env)) + ENDING_MS_MAX);
  expect([service.read_only, service.cap_drop, service.security_opt]).toEqual([true, ["ALL"], ["no-new-privileges:true"]]);
});

test("[DEP9] addresses, dependencies and volumes refer to existing services", () => {
  const values = Object.values(services).flatMap(({ environment = {} }) => Object.values(asText(environment)));
  const hosts = values.flatMap((value) => [...value.matchAll(/(?:\w+:\/\/|@)([\w-]+):\d+/g)].map(([, host]) => host!));
  expect(hosts.length).toBeGreaterThan(10);
  expect(hosts.filter((host) => services[host] === undefined)).toEqual([]);
  for (const { depends_on = {} } of Object.values(services))
    for (const [name, { condition }] of Object.entries(depends_on))
      expect([name, condition, services[name]?.healthcheck !== undefined || services[name]?.image === "coroom"]).toEqual([
        name,
        "service_healthy",
        true, // The image has a health check of its own.
      ]);
  const mounted = Object.values(services).flatMap(({ volumes: own = [] }) => own.map((volume) => volume.split(":")[0]!));
  expect(mounted.filter((source) => !source.startsWith("./") && !(source in volumes))).toEqual([]);
});

test("[DEP10] secrets come only from the environment, and example.env lists all required ones", () => {
  const demanded = [...TEXT.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name!);
  const made = [...SECRETS.matchAll(/^(\w+)=/gm)].map(([, name]) => name!).filter((name) => name !== "COROOM_METRICS_SECRET");
  expect([...new Set(demanded)].sort()).toEqual(["COROOM_ALLOWED_ORIGINS", ...made].sort());
  expect(demanded.filter((name) => !(name in given))).toEqual([]);
  const inTheOpen = [...TEXT.matchAll(/^\s+(COROOM_\w+): (?!\$\{)(.+)$/gm)].filter(([, name]) => secretVariables().includes(name!));
  // An address is a secret only when it contains a user.
  expect(inTheOpen.filter(([, , value]) => !/^\w+:\/\/(?:[\w-]+:\$\{\w+:\?[^}]*\}@)?[^@]+$/.test(value!))).toEqual([]);
});

test("[DEP12] nats-server has the users of the roles, in this environment", () => {
  const config = { environment: "production", logPartitions: 3 };
  expect(readFileSync("deploy/nats/users.conf", "utf8")).toBe(`${natsUsersText(config)}\n`);
  expect(readFileSync("deploy/nats/nats.conf", "utf8")).toContain('include "users.conf"');
  for (const { role, env } of processes)
    if (role !== "probe")
      expect([role, env["COROOM_NATS_URL"]]).toEqual([role, expect.stringContaining(`://${role}:${passwordOf("NATS", role)}@`)]);
});

test("[DEP13] redis-server has the users of the roles, and no others", () => {
  const credentials = REDIS_ROLES.map((role) => `--${redisUserLine(role, "production", `>${passwordOf("REDIS", role)}`)}`);
  expect(services["redis"]!.command!.filter((argument) => argument.startsWith("--user"))).toEqual([
    `--${REDIS_DEFAULT_USER}`,
    ...credentials,
  ]);
  for (const { role, env } of processes) {
    const isReader = REDIS_ROLES.some((known) => known === role);
    expect([role, env["COROOM_REDIS_URL"]]).toEqual([
      role,
      isReader ? `redis://${role}:${passwordOf("REDIS", role)}@redis:6379` : undefined,
    ]);
  }
});

test("[DEP14] the balancer knows each gateway of the compose file, and only it is reachable from outside", () => {
  const config = readFileSync("deploy/balancer/haproxy.cfg", "utf8");
  const known = [...config.matchAll(/^ +server (\S+) (\S+)$/gm)].map(([, name, address]) => `${name} ${address}`);
  const gateways = processes.filter(({ role }) => role === "gateway").map(({ name }) => `${name} ${name}:8080`);
  expect(known).toEqual([...gateways, ...gateways]);
  const open = Object.entries(services).filter(([, { ports = [] }]) => ports.length > 0);
  expect(open.map(([name]) => name)).toEqual(["balancer"]);
});

test("[DEP11] Prometheus scrapes each process at its health port", () => {
  const { scrape_configs } = parse(readFileSync("deploy/prometheus/prometheus.yaml", "utf8")) as {
    scrape_configs: { static_configs: { labels: { role: Role }; targets: string[] }[] }[];
  };
  const scraped = scrape_configs.flatMap(({ static_configs }) =>
    static_configs.flatMap(({ labels, targets }) => targets.map((target) => [labels.role, target])),
  );
  expect([...scraped].sort()).toEqual(processes.map(({ role, name }) => [role, `${name}:8090`]).sort());
});

function passwordOf(engine: "NATS" | "REDIS", role: string): string {
  return given[`${engine}_${role.replaceAll("-", "_").toUpperCase()}_PASSWORD`]!;
}

function asText(environment: Readonly<Record<string, string | number>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
}

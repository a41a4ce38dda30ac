/**
 * `deploy/compose.yaml` starts roles with valid settings and sufficient stop timeouts, and Prometheus scrapes all
 * processes.
 */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";

import { type Role, startSettings } from "../cli/settings.ts";
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
const SECRET = "0123456789abcdef0123456789abcdef";
const example = readFileSync("deploy/example.env", "utf8");

/** A completed copy of example.env. */
const given = Object.fromEntries([...example.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value === "" ? SECRET : value!]));
/** Substitutes variables like compose, in parsed values: a variable that is empty must not change the structure of the file. */
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

test("[DEP6] the compose file has two processes per role, a probe and three nats-servers", () => {
  const count = (role: Role): number => processes.filter((process) => process.role === role).length;
  const roles = DEPLOYED_ROLES.filter((role) => role !== "y-websocket");
  expect(roles.map((role) => [role, count(role)])).toEqual(roles.map((role) => [role, role === "probe" ? 1 : 2]));
  expect(Object.keys(services).filter((name) => name.startsWith("nats"))).toEqual(["nats-1", "nats-2", "nats-3"]);
});

test.each(processes)("[DEP7] $name gets only settings that it reads, and would start with them", async ({ role, service, env }) => {
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
  const hosts = values.flatMap((value) => [...value.matchAll(/\w+:\/\/([\w-]+):\d+/g)].map(([, host]) => host!));
  expect(hosts.length).toBeGreaterThan(10);
  expect(hosts.filter((host) => services[host] === undefined)).toEqual([]);
  for (const { depends_on = {} } of Object.values(services))
    for (const [name, { condition }] of Object.entries(depends_on))
      expect([name, condition, services[name]?.healthcheck !== undefined]).toEqual([name, "service_healthy", true]);
  const mounted = Object.values(services).flatMap(({ volumes: own = [] }) => own.map((volume) => volume.split(":")[0]!));
  expect(mounted.filter((source) => !source.startsWith("./") && !(source in volumes))).toEqual([]);
});

test("[DEP10] secrets come only from the environment, and example.env lists all required ones", () => {
  const demanded = [...TEXT.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name!);
  expect([...new Set(demanded)].sort()).toEqual([
    "COROOM_ALLOWED_ORIGINS",
    "COROOM_INTERNAL_SECRET",
    "COROOM_JWT_SECRET",
    "COROOM_ROOM_SECRET",
  ]);
  expect(demanded.filter((name) => !(name in given))).toEqual([]);
  const inTheOpen = [...TEXT.matchAll(/^\s+(COROOM_\w+): (?!\$\{)(.+)$/gm)].filter(([, name]) => secretVariables().includes(name!));
  // An address is a secret only when it contains a user.
  expect(inTheOpen.filter(([, , value]) => !/^\w+:\/\/[^@]+$/.test(value!))).toEqual([]);
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

function asText(environment: Readonly<Record<string, string | number>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
}

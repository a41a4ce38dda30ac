/**
 * Moderation commands. They call a gateway over HTTP (`gateway/io/http/admin-routes.ts`,
 * `gateway/io/http/document-routes.ts`) with a token or with the operator's secret.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

import { SettingError, type Settings, type Values } from "../shared/settings/settings.ts";
import type { AdminCommandName, GatewayAccess } from "./command-settings.ts";
import { answerAs, type GatewayAnswer, askGateway, bearerOf } from "./ask-gateway.ts";
import { gatewayFor } from "./local-addresses.ts";

const DRAIN_STEP_MS = 1_000;
const Drained = z.object({ connections: z.number() });
const Gathered = z.looseObject({ gateways: z.number() });
const Imposed = z.object({ until: z.string() });

/** Resolves with the text to print. When the gateway refuses, it throws a SettingError with the gateway's message. */
export async function runAdmin(command: AdminCommandName, settings: Values<Settings>): Promise<string> {
  const { url: givenUrl, token, operatorSecret, dataDir, for: seconds, ...named } = settings as GatewayAccess & Record<string, unknown>;
  const url = gatewayFor({ url: givenUrl, dataDir });
  const bearer = bearerOf({ token, operatorSecret, dataDir });
  const ask = (path: string, body?: object) =>
    askGateway(new URL(`/v1/admin${path}`, url), bearer, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const place = () => `/rooms/${encodeURIComponent(String(named["room"]))}`;
  const ofTenant = () => `?tenant=${encodeURIComponent(String(named["tenant"]))}`;
  const given = Object.entries(named).filter(([, value]) => value !== "");
  const body = {
    ...Object.fromEntries(given),
    ...(seconds === undefined ? {} : { seconds }),
  };
  switch (command) {
    case "kick":
      return toJson(ofGateways(await ask("/kick", body)));
    case "downgrade":
    case "ban":
      return toJson(answerAs(Imposed, await ask(`/${command}`, body)));
    case "unban":
      return toJson({ lifted: true, wouldHaveEnded: answerAs(Imposed, await ask("/lift", body)).until });
    case "bans":
      return toJson(await ask("/bans"));
    case "members":
      return toJson(ofGateways(await ask(`${place()}/members${ofTenant()}`)));
    case "delete-room":
      return toJson(await askGateway(new URL(`/v1${place()}${ofTenant()}`, url), bearer, { method: "DELETE" }));
    case "rooms":
      return toJson(
        await askGateway(new URL(`/v1/rooms?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`, url), bearer, {}),
      );
    case "drain":
      return drain(() => ask("/drain", {}), Number(named["drainMs"]));
  }
}

/** Waits until no client is connected. The gateway process keeps running; the operator stops it. */
async function drain(ask: () => Promise<unknown>, msMax: number): Promise<string> {
  for (let waitedMs = 0; ; waitedMs += DRAIN_STEP_MS) {
    const { connections } = answerAs(Drained, await ask());
    if (connections === 0)
      return "drained: no client is connected, and the gateway accepts no new connections. Stop it, or restart it to use it again";
    if (waitedMs >= msMax)
      throw new SettingError(
        `${connections} connections have not moved within ${msMax} ms. Check that another gateway runs. Stopping this gateway closes the connections`,
      );
    await sleep(DRAIN_STEP_MS);
  }
}

/**
 * Refuses an answer without any gateway. The asked gateway also receives its own request, so zero gateways means that
 * NATS failed.
 */
function ofGateways(answer: GatewayAnswer): GatewayAnswer {
  if (answerAs(Gathered, answer).gateways === 0)
    throw new SettingError(
      "no gateway took part, because NATS does not deliver messages between gateways. Check NATS and run the command again",
    );
  return answer;
}

function toJson(answer: unknown): string {
  return JSON.stringify(answer, null, 2);
}

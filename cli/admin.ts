/** What people who run rooms type: asks a gateway over HTTP (`gateway/io/admin-routes.ts`, `gateway/io/document-delete-routes.ts`), as an operator or with a token. */

import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

import { SettingError, type Settings, type Values } from "../shared/config.ts";
import type { AdminCommand, Gateway } from "./admin-settings.ts";
import { type Answer, askGateway } from "./ask-gateway.ts";
import { localSecrets } from "./secrets.ts";

const DRAIN_STEP_MS = 1_000;
const Drained = z.object({ connections: z.number() });
const Gathered = z.looseObject({ gateways: z.number() });
const Imposed = z.object({ until: z.string() });

/** Resolves with what to print. Throws SettingError with what the gateway answers to a refusal. */
export async function runAdmin(command: AdminCommand, given: Values<Settings>): Promise<string> {
  const { url, token, internalSecret, dataDir, for: seconds, ...named } = given as Gateway & Record<string, unknown>;
  const bearer = token || internalSecret || localSecrets(dataDir).internalSecret;
  const ask = (path: string, body?: object) =>
    askGateway(new URL(`/v1/admin${path}`, url), bearer, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
  const place = () => `/rooms/${encodeURIComponent(String(named["room"]))}`;
  const ofTenant = () => `?tenant=${encodeURIComponent(String(named["tenant"]))}`;
  const body = {
    ...Object.fromEntries(Object.entries(named).filter(([, value]) => value !== "")),
    ...(seconds === undefined ? {} : { seconds }),
  };
  switch (command) {
    case "kick":
      return print(ofGateways(await ask("/kick", body)));
    case "downgrade":
    case "ban":
      return print(Imposed.parse(await ask(`/${command}`, body)));
    case "unban":
      return print({ lifted: true, wouldHaveEnded: Imposed.parse(await ask("/lift", body)).until });
    case "bans":
      return print(await ask("/bans"));
    case "members":
      return print(ofGateways(await ask(`${place()}/members${ofTenant()}`)));
    case "delete-room":
      return print(await askGateway(new URL(`/v1${place()}${ofTenant()}`, url), bearer, { method: "DELETE" }));
    case "drain":
      return drain(() => ask("/drain", {}), Number(named["drainMs"]));
  }
}

/** Until nobody is left; the process itself stays, for whoever started it to end. */
async function drain(ask: () => Promise<unknown>, msMax: number): Promise<string> {
  for (let waitedMs = 0; ; waitedMs += DRAIN_STEP_MS) {
    const { connections } = Drained.parse(await ask());
    if (connections === 0) return "drained: nobody is connected, and nobody new is let in";
    if (waitedMs >= msMax)
      throw new SettingError(
        `${connections} connections have not moved in ${msMax} ms: is there another gateway to move to? Ending this one closes them`,
      );
    await sleep(DRAIN_STEP_MS);
  }
}

/** Of what all gateways were asked for. One that asks hears itself as well, so none at all is no answer. */
function ofGateways(answer: Answer): Answer {
  if (Gathered.parse(answer).gateways === 0)
    throw new SettingError(
      "no gateway took part, not even the one that was asked: NATS carries nothing between them. See to NATS, and ask again",
    );
  return answer;
}

function print(answer: unknown): string {
  return JSON.stringify(answer, null, 2);
}

/** Asks a gateway over HTTP. Whatever comes back instead of an answer is told with what was behind it, and what to do. */

import { z } from "zod";

import { SettingError } from "../shared/config.ts";

const Answer = z.looseObject({ message: z.string().optional() });
export type Answer = z.infer<typeof Answer>;

/** Nobody is there, as Node and undici name it. Anything else went wrong with somebody who is. */
const NOBODY_THERE: readonly unknown[] = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
];

const PASS = /^operator\./;
/** Three parts, of which the last is its signature. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** Throws SettingError with what the gateway says to a refusal, and where it could not be asked. */
export async function askGateway(url: URL, bearer: string, asked: { readonly method?: string; readonly body?: string }): Promise<Answer> {
  const { ok, status, text } = await exchange(url, bearer, asked);
  const said = readAnswer(text);
  if (said === undefined)
    throw new SettingError(`what answers at ${url.origin} is no gateway (HTTP ${status}, and no JSON): give the address of one with --url`);
  if (!ok) throw new SettingError(refusalOf(status, said.message ?? `the gateway answered ${status}`, bearer));
  return said;
}

/** A gateway takes for a token what is not its own secret: whoever gave a secret is to look at that. */
function refusalOf(status: number, message: string, bearer: string): string {
  if (status !== 401) return message;
  if (PASS.test(bearer))
    return `${message}. The operator's pass is not of this gateway, or its time is over: make one with "coroom ops pass"`;
  if (JWT.test(bearer)) return message;
  return `${message}. What was to be an operator's secret is not this gateway's: give the COROOM_INTERNAL_SECRET that it runs with (--internal-secret), or the COROOM_DATA_DIR of a local system`;
}

async function exchange(
  url: URL,
  bearer: string,
  asked: { readonly method?: string; readonly body?: string },
): Promise<{ readonly ok: boolean; readonly status: number; readonly text: string }> {
  try {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${bearer}` }, ...asked });
    return { ok: answer.ok, status: answer.status, text: await answer.text() };
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // What fetch throws, whatever went wrong.
    const behind = error.cause instanceof Error ? error.cause : error;
    const code = "code" in behind ? behind.code : undefined;
    const why =
      typeof code !== "string" || behind.message.includes(code)
        ? behind.message
        : [behind.message, code].filter((part) => part !== "").join(", ");
    if (NOBODY_THERE.includes(code))
      throw new SettingError(`no gateway answers at ${url.origin} (${why}): start one, or give --url`, { cause: error });
    throw new SettingError(
      `what answers at ${url.origin} could not be asked (${why}): look whether --url has the scheme and the name that the gateway's certificate has; NODE_EXTRA_CA_CERTS=file.pem has its issuer trusted`,
      { cause: error },
    );
  }
}

/** Undefined: no JSON object. */
function readAnswer(text: string): Answer | undefined {
  try {
    return Answer.safeParse(JSON.parse(text)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

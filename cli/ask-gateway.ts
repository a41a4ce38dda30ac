/** Sends HTTP requests to a gateway. Every failure becomes a SettingError with its cause and a remedy. */

import { z } from "zod";

import { SettingError } from "../shared/settings/settings.ts";
import type { GatewayAccess } from "./command-settings.ts";
import { startedRoleSecrets } from "./secrets.ts";

export type GatewayRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer<ArrayBuffer>;
};

const GatewayAnswer = z.looseObject({ message: z.string().optional() });
export type GatewayAnswer = z.infer<typeof GatewayAnswer>;

/**
 * Error codes of Node and undici for an address where no server listens. For other codes a server is there, but the
 * request failed.
 */
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
/** Three parts; the last part is the signature. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** `isToken`: the user gave it as a token. The remedy for a refusal depends on it. */
type GatewayBearer = { readonly isToken: boolean; readonly text: string };

/** The token, else the given operator secret, else that of the local system. Throws SettingError when there is none. */
export function bearerOf({ token, operatorSecret, dataDir }: Pick<GatewayAccess, "token" | "operatorSecret" | "dataDir">): GatewayBearer {
  if (token !== "") return { isToken: true, text: token };
  const otherwise = "set COROOM_OPERATOR_SECRET (--operator-secret) to the gateway's secret, or --token to a token";
  return { isToken: false, text: operatorSecret || startedRoleSecrets(dataDir, otherwise).operatorSecret };
}

/** Throws SettingError with the gateway's message for a refusal, or with the reason why the request failed. */
export async function askGateway(url: URL, bearer: GatewayBearer, asked: GatewayRequest): Promise<GatewayAnswer> {
  const { ok, status, text } = await fetchFromGateway(url, bearer.text, asked, async (response) => ({
    ok: response.ok,
    status: response.status,
    text: await response.text(),
  }));
  const answer = readAnswer(text);
  if (answer === undefined)
    throw new SettingError(
      `the server at ${url.origin} is not a gateway (HTTP ${status} without JSON). Set --url to the address of a gateway`,
    );
  if (!ok) throw new SettingError(refusalOf(status, answer.message ?? `the gateway answered ${status}`, bearer));
  return answer;
}

/** The gateway treats a wrong secret or pass as a token, so its message would mislead an operator. */
function refusalOf(status: number, message: string, { isToken, text }: GatewayBearer): string {
  if (status !== 401) return message;
  if (PASS.test(text)) return 'the operator pass has expired or belongs to another system. Create a new one with "coroom ops pass"';
  if (!isToken)
    return "the operator secret differs from the gateway's. Set COROOM_OPERATOR_SECRET (--operator-secret) to the gateway's value, or COROOM_DATA_DIR to the folder of a local system";
  const what = JWT.test(text) ? message : "the value of --token (COROOM_TOKEN) is neither a token nor an operator pass";
  return `${what}. Set --token (COROOM_TOKEN) to a valid token with the right admin, or leave it out to use the operator secret`;
}

/** What `read` makes of the response, whatever its status. Throws SettingError with the reason why there is none. */
export async function fetchFromGateway<Read>(
  url: URL,
  bearer: string,
  { headers = {}, ...asked }: GatewayRequest,
  read: (response: Response) => Promise<Read>,
): Promise<Read> {
  try {
    return await read(await fetch(url, { headers: { ...headers, authorization: `Bearer ${bearer}` }, ...asked }));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch throws TypeError for every network failure.
    const behind = error.cause instanceof Error ? error.cause : error;
    const code = "code" in behind ? behind.code : undefined;
    const why =
      typeof code !== "string" || behind.message.includes(code)
        ? behind.message
        : [behind.message, code].filter((part) => part !== "").join(", ");
    if (NOBODY_THERE.includes(code))
      throw new SettingError(`no gateway answers at ${url.origin} (${why}). Start one, or set --url`, { cause: error });
    throw new SettingError(
      `the request to ${url.origin} failed (${why}). Check that --url has the right scheme and the host name in the gateway's certificate. NODE_EXTRA_CA_CERTS=file.pem makes Node trust its issuer`,
      { cause: error },
    );
  }
}

/** Returns undefined when the text is not a JSON object. */
function readAnswer(text: string): GatewayAnswer | undefined {
  try {
    return GatewayAnswer.safeParse(JSON.parse(text)).data;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

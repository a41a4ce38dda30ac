/** Sends HTTP requests to a gateway. Every failure becomes a SettingError with its cause and a remedy. */

import { z } from "zod";

import { SettingError } from "../shared/settings/settings.ts";
import { parseJson } from "../shared/parse-json.ts";
import type { GatewayAccess } from "./command-settings.ts";
import { startedRoleSecrets } from "./secrets.ts";

export type GatewayRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer<ArrayBuffer>;
};

const GatewayAnswer = z.looseObject({ error: z.string().optional(), message: z.string().optional() });
export type GatewayAnswer = z.infer<typeof GatewayAnswer>;

/** Error codes of Node and undici. For other codes a server is there, but the request failed. */
const NOBODY_THERE: readonly unknown[] = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"];
const UNKNOWN_HOST: readonly unknown[] = ["ENOTFOUND", "EAI_AGAIN"];
/** With https://: the answer is no TLS. */
const NO_TLS: readonly unknown[] = ["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_PACKET_LENGTH_TOO_LONG", "EPROTO"];
/** With http://: a server with TLS ends the connection, or answers with a TLS alert, which is no HTTP. */
const NO_ANSWER: readonly unknown[] = ["UND_ERR_SOCKET", "ECONNRESET", "HPE_INVALID_CONSTANT"];

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
  if (!ok) throw new SettingError(refusalOf(status, answer, bearer));
  return answer;
}

/** An answer with the fields that a command needs. Throws SettingError for other JSON: of another server, or of another version. */
export function answerAs<Answer>(schema: z.ZodType<Answer>, answer: unknown): Answer {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  const [{ path, message } = { path: [], message: "" }] = read.error.issues;
  throw new SettingError(
    `the server answered, but not an answer that this command understands (${path.join(".")}: ${message}). Check --url, and that gateway and command have the same version`,
  );
}

/** The gateway treats a wrong secret or pass as a token, so its message would mislead an operator. */
function refusalOf(status: number, answer: GatewayAnswer, { isToken, text }: GatewayBearer): string {
  const message = answer.message ?? `the gateway answered ${status}`;
  if (status !== 401) return message;
  if (PASS.test(text)) return 'the operator pass has expired or belongs to another system. Create a new one with "coroom ops pass"';
  if (!isToken)
    return "the operator secret differs from the gateway's. Set COROOM_OPERATOR_SECRET (--operator-secret) to the gateway's value, or COROOM_DATA_DIR to the folder of a local system";
  if (answer.error === "not-an-operator")
    return "only operators may do this, whatever the rights of a token. Leave out --token (COROOM_TOKEN), and set COROOM_OPERATOR_SECRET (--operator-secret) to the gateway's value";
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
    throw new SettingError(explainFailure(url, error.cause instanceof Error ? error.cause : error), { cause: error });
  }
}

/** Why there is no answer, and what to do. */
function explainFailure({ origin, protocol, host, hostname, port }: URL, cause: Error): string {
  const code = "code" in cause ? cause.code : undefined;
  const message = String(code).startsWith("ERR_SSL_") ? "" : cause.message; // OpenSSL's names its own source files.
  const why = typeof code !== "string" || message.includes(code) ? message : [message, code].filter((part) => part !== "").join(", ");
  const failed = `the request to ${origin} failed (${why})`;
  if (message === "bad port")
    // undici gives this error no code.
    return `${failed}: Node never sends requests to port ${port}, nor do browsers. Let the gateway listen on another port (COROOM_PORT), or correct --url`;
  if (UNKNOWN_HOST.includes(code)) return `the host name ${hostname} has no address (${why}). Check --url, and the DNS of this machine`;
  if (NOBODY_THERE.includes(code)) return `no gateway answers at ${origin} (${why}). Start one, or set --url`;
  if (protocol === "https:" && NO_TLS.includes(code)) return `${failed}: the server does not speak TLS. Set --url to http://${host}`;
  if (protocol === "http:" && NO_ANSWER.includes(code))
    return `the server at ${origin} closed the connection without an answer (${why}). If it speaks TLS, set --url to https://${host}. Otherwise check that it is a gateway, and try again`;
  if (protocol === "http:") return `${failed}. Check --url`;
  return `${failed}. Check that --url has the host name in the gateway's certificate. NODE_EXTRA_CA_CERTS=file.pem makes Node trust its issuer`;
}

/** Returns undefined when the text is not a JSON object. */
export function readAnswer(text: string): GatewayAnswer | undefined {
  return GatewayAnswer.safeParse(parseJson(text)).data;
}

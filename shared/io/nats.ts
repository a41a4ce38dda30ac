/**
 * Connects to NATS for as long as the process lives: a lost server is waited for, never given up on.
 * While the line is down nothing is buffered for long: what must not be lost is sent again by its owner.
 */

import { connect, errors, type Msg, type NatsConnection, type PublishOptions, type Subscription, type SubscriptionOptions } from "nats";

import { SettingError } from "../config.ts";
import { StartError } from "../start-error.ts";
import { natsAddress, type NatsSettings } from "./nats-address.ts";

export type { Msg, NatsConnection } from "nats";

/** As the settings say, under a name that `nats server report connections` shows. */
export function connectAs(
  name: string,
  { natsUrl: servers, natsCredentials, natsCa, natsCert, natsKey }: Required<NatsSettings>,
): Promise<NatsConnection> {
  return connectNats({ servers, natsCredentials, natsCa, natsCert, natsKey, name });
}

/**
 * `servers`: one URL or several, comma-separated. Throws a StartError when none answers within `timeoutMs`, and a
 * SettingError when none lets us in.
 */
export async function connectNats(
  options: { servers: string; name: string; timeoutMs?: number } & Omit<NatsSettings, "natsUrl">,
): Promise<NatsConnection> {
  const address = natsAddress({ ...options, natsUrl: options.servers });
  try {
    return await connect({
      ...address.options,
      servers: [...address.servers],
      name: options.name,
      timeout: options.timeoutMs ?? 10_000,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 100,
      ignoreAuthErrorAbort: true, // A server that is given its users again after a restart is waited for like any other.
      pingInterval: 5_000,
      maxPingOut: 2,
      noAsyncTraces: true, // Two stacks kept for each request cost more than the request, and what fails is logged where it was asked.
    });
  } catch (error) {
    const where = address.servers.join(",");
    if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError) {
      throw new SettingError(
        `NATS at ${where} does not let Coroom in: give a user and password that it knows in COROOM_NATS_URL (nats://user:password@host), or a valid credentials file in COROOM_NATS_CREDENTIALS`,
        { cause: error },
      );
    }
    if (isOfCertificates(error)) {
      throw new SettingError(
        `NATS at ${where} shows a certificate that is not trusted (${error.code}): name it as its certificate does, and set COROOM_NATS_CA to the certificates of who signed it`,
        { cause: error },
      );
    }
    const [overTls, orShow] =
      address.options.tls === undefined
        ? ["", ""]
        : [
            " over TLS",
            "; one that asks for a certificate answers nobody before it is shown one that it takes: set COROOM_NATS_CERT and COROOM_NATS_KEY",
          ];
    throw new StartError(`no NATS server answers at ${where}${overTls}: start one, or set COROOM_NATS_URL${orShow}`, { cause: error });
  }
}

/** Whoever flushes in the same turn of the event loop shares one round trip: a server that takes over rooms subscribes to hundreds. */
export function flushTogether(nats: Pick<NatsConnection, "flush">): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () =>
    (next ??= Promise.resolve().then(() => {
      next = undefined;
      return nats.flush();
    }));
}

/** Where nobody waits, and nothing does. */
const UNAWAITED = { resolve: () => {}, reject: () => {} };
const UNREAD = { signal: UNAWAITED, iterClosed: UNAWAITED, closed: UNAWAITED, yields: Object.freeze([]) };

/**
 * For very many subscriptions, those of rooms: nats.js makes three promises and a queue for each, 0.9 KB, that only those
 * wait for who read what comes in a loop, or for its end. `closed` never comes to anything here. All share one callback,
 * to which a message says by its `sid` which subscription it came on.
 */
export function lightSubscriber(
  nats: Pick<NatsConnection, "subscribe">,
  receive: NonNullable<SubscriptionOptions["callback"]>,
): (subject: string) => Subscription {
  const options = { callback: crashing(receive) };
  return (subject) => Object.assign(nats.subscribe(subject, options), UNREAD);
}

/** One of them, with a callback of its own. */
export function subscribeLightly(
  nats: Pick<NatsConnection, "subscribe">,
  subject: string,
  receive: NonNullable<SubscriptionOptions["callback"]>,
): Subscription {
  return lightSubscriber(nats, receive)(subject);
}

/**
 * Resolves once what comes from now on is heard. Where the line is lost before, the subscription is closed: the client
 * would make it again with the next line, with nobody behind it, and whoever says something there would seem to be heard.
 */
export async function onceHeard(subscription: Pick<Subscription, "unsubscribe">, flush: () => Promise<void>): Promise<void> {
  try {
    await flush();
  } catch (error) {
    subscription.unsubscribe();
    throw error;
  }
}

/**
 * Says it to whoever hears it. The client throws at what is said while the connection closes, which takes a while: a
 * timer or an answer that comes then would end a process that stops in good order.
 */
export function say(nats: Pick<NatsConnection, "publish">, subject: string, data?: Uint8Array | string, options?: PublishOptions): void {
  try {
    nats.publish(subject, data, options);
  } catch (error) {
    if (!isOfClosing(error)) throw error;
  }
}

/** The same to whoever asked. */
export function respond(msg: Pick<Msg, "respond">, data: Uint8Array): void {
  try {
    msg.respond(data);
  } catch (error) {
    if (!isOfClosing(error)) throw error;
  }
}

/** Whether NATS takes a message so long: the client throws at one that it would not. */
export function carries(nats: Pick<NatsConnection, "info">, data: Uint8Array): boolean {
  return data.byteLength <= (nats.info?.max_payload ?? Number.POSITIVE_INFINITY);
}

/** Node's codes for them begin or end so, such as DEPTH_ZERO_SELF_SIGNED_CERT and ERR_TLS_CERT_ALTNAME_INVALID. */
function isOfCertificates(error: unknown): error is Error & { code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string" && /CERT|^UNABLE_TO_|^ERR_TLS_/.test(error.code);
}

function isOfClosing(error: unknown): boolean {
  return error instanceof errors.DrainingConnectionError || error instanceof errors.ClosedConnectionError;
}

const DRAIN_MS_MAX = 5_000;

/** Delivers what is on its way, and ends the connection. While the line is down there is nobody to deliver to. */
export async function closeNats(nats: NatsConnection): Promise<void> {
  let giveUp: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (giveUp = setTimeout(resolve, DRAIN_MS_MAX)));
  const drained = nats.drain().catch(() => {}); // Refused without a line.
  await Promise.race([drained, late]);
  clearTimeout(giveUp);
  await nats.close();
}

/**
 * For a subscription's callback: what it throws is a programmer's mistake and ends the process. Left to itself,
 * nats.js would end its reader and keep a connection that hears nothing.
 */
export function crashing<Args extends readonly unknown[]>(receive: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    try {
      receive(...args);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}

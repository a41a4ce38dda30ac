/**
 * Connects to NATS for the life of the process. It waits for a lost server without a limit. While the connection is
 * down almost nothing is buffered: the sender of important data sends it again.
 */

import { connect, errors, type Msg, type NatsConnection, type PublishOptions, type Subscription, type SubscriptionOptions } from "nats";

import { inboxOf, type NatsRole } from "../bus/permissions.ts";
import { SettingError } from "../settings/settings.ts";
import { natsAddress, type NatsSettings } from "./nats-address.ts";
import { StartError } from "../process/lifecycle.ts";
import { limitedLog } from "../process/limited-log.ts";
import type { Log } from "../process/log.ts";
import { systemClock } from "./system-clock.ts";

export type { Msg, NatsConnection } from "nats";

/**
 * Addresses and credentials from the settings, and a name that `nats server report connections` shows. The role receives
 * answers at an inbox that users of other roles cannot read.
 */
export function connectAs(
  role: NatsRole,
  name: string,
  { natsUrl: servers, environment, natsCredentials, natsCa, natsCert, natsKey }: Required<NatsSettings> & { readonly environment: string },
): Promise<NatsConnection> {
  return connectNats({ servers, natsCredentials, natsCa, natsCert, natsKey, name, inboxPrefix: inboxOf(environment, role) });
}

/**
 * `servers`: one URL or several, separated by commas. Throws a StartError when no server answers within `timeoutMs`,
 * and a SettingError when the servers reject the credentials.
 */
export async function connectNats(
  options: { servers: string; name: string; timeoutMs?: number; inboxPrefix?: string } & Omit<NatsSettings, "natsUrl">,
): Promise<NatsConnection> {
  const address = natsAddress({ ...options, natsUrl: options.servers });
  const connection = (isFirst: boolean): Promise<NatsConnection> =>
    connect({
      ...address.options,
      servers: [...address.servers],
      name: options.name,
      ...(options.inboxPrefix === undefined ? {} : { inboxPrefix: options.inboxPrefix }),
      timeout: options.timeoutMs ?? 10_000,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      reconnectJitter: 100,
      ignoreAuthErrorAbort: true, // The client also waits for a server that gets its users back only after a restart.
      pingInterval: 5_000,
      maxPingOut: 2,
      noAsyncTraces: true, // Keeping two stacks for each request costs more than the request. The caller logs failures.
      ignoreClusterUpdates: isFirst,
    });
  try {
    // Each server of a cluster names the others before it checks the login. The client would try them without end.
    await (await connection(true)).close();
    return await connection(false);
  } catch (error) {
    const where = address.servers.join(",");
    if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError) {
      throw new SettingError(
        `NATS at ${where} rejects the credentials. Set a valid user and password in COROOM_NATS_URL (nats://user:password@host), or a valid credentials file in COROOM_NATS_CREDENTIALS`,
        { cause: error },
      );
    }
    if (isOfCertificates(error)) {
      throw new SettingError(
        `the certificate of NATS at ${where} is not trusted (${error.code}). Use the host name or IP address in the certificate, and set COROOM_NATS_CA to the certificates of its issuer`,
        { cause: error },
      );
    }
    const [overTls, orShow] =
      address.options.tls === undefined
        ? ["", ""]
        : [" over TLS", ". If it requires client certificates, set COROOM_NATS_CERT and COROOM_NATS_KEY"];
    throw new StartError(`no NATS server answers at ${where}${overTls}. Start one, or set COROOM_NATS_URL${orShow}`, { cause: error });
  }
}

/**
 * Logs each subject that nats-server does not let this process use, for all its subscriptions and messages: nats-server
 * otherwise drops them in silence.
 */
export function logForbidden(nats: Pick<NatsConnection, "status">, log: Log): void {
  const limited = limitedLog(log, systemClock);
  void (async () => {
    for await (const status of nats.status()) {
      if (status.type !== "error" || !(status.error instanceof errors.PermissionViolationError)) continue;
      const { operation, subject } = status.error;
      limited.warn(
        { operation, subject },
        "NATS does not allow a subject that this process needs. Print the users of NATS again (coroom nats-users), with the COROOM_ENVIRONMENT and COROOM_LOG_PARTITIONS of this process",
      );
    }
  })();
}

type ConnectionWatcher = {
  readonly receiveLost: () => void;
  /** The connection is back, and its subscriptions are on their way to NATS. */
  readonly receiveBack?: () => void;
  /** NATS has the subscriptions again, so no later message is missed. */
  readonly receiveFound: () => void;
};

/** Reports each loss of the connection and each reconnect, until the connection is closed. */
export async function watchReconnects(nats: NatsConnection, { receiveLost, receiveBack, receiveFound }: ConnectionWatcher): Promise<void> {
  for await (const { type } of nats.status()) {
    if (type === "disconnect") receiveLost();
    else if (type === "reconnect") {
      receiveBack?.();
      nats.flush().then(receiveFound, () => {}); // Rejects if the connection is lost again: another "reconnect" follows.
    }
  }
}

/**
 * All flushes of one turn of the event loop share one round trip: a server that takes over rooms subscribes to
 * hundreds.
 */
export function flushTogether(nats: Pick<NatsConnection, "flush">): () => Promise<void> {
  let next: Promise<void> | undefined;
  return () =>
    (next ??= Promise.resolve().then(() => {
      next = undefined;
      return nats.flush();
    }));
}

/** For promises that no caller awaits. */
const UNAWAITED = { resolve: () => {}, reject: () => {} };
const UNREAD = { signal: UNAWAITED, iterClosed: UNAWAITED, closed: UNAWAITED, yields: Object.freeze([]) };

/**
 * For very many subscriptions, such as those of rooms. nats.js creates three promises and a queue (0.9 KB) for each,
 * needed only to iterate messages or await the end. Here `closed` never resolves. All subscriptions share one callback,
 * and a message names its subscription by `sid`.
 */
export function lightSubscriber(
  nats: Pick<NatsConnection, "subscribe">,
  receive: NonNullable<SubscriptionOptions["callback"]>,
): (subject: string) => Subscription {
  const options = { callback: crashing(receive) };
  return (subject) => Object.assign(nats.subscribe(subject, options), UNREAD);
}

/** One light subscription, with its own callback. */
export function subscribeLightly(
  nats: Pick<NatsConnection, "subscribe">,
  subject: string,
  receive: NonNullable<SubscriptionOptions["callback"]>,
): Subscription {
  return lightSubscriber(nats, receive)(subject);
}

/**
 * Resolves once the subscription receives messages. If the connection is lost before, the subscription is closed.
 * Otherwise the client would restore it on the next connection without a receiver, and publishers would believe that
 * their messages arrive.
 */
export async function onceSubscribed(subscription: Pick<Subscription, "unsubscribe">, flush: () => Promise<void>): Promise<void> {
  try {
    await flush();
  } catch (error) {
    subscription.unsubscribe();
    throw error;
  }
}

/**
 * Publishes to all subscribers, or does nothing while the connection closes. The client would throw in that time, so
 * that a timer or an answer would end a process that stops in good order.
 */
export function publish(
  nats: Pick<NatsConnection, "publish">,
  subject: string,
  data?: Uint8Array | string,
  options?: PublishOptions,
): void {
  try {
    nats.publish(subject, data, options);
  } catch (error) {
    if (!isOfClosing(error)) throw error;
  }
}

/** An inbox of Coroom's roles, or of another client of NATS. */
const INBOX = /^(?:_INBOX|[^.]+\.inbox)\./;

/**
 * Publishes a reply, or does nothing while the connection closes. A reply to anything but an inbox is dropped: with the
 * permissions of this process it would reach subjects that the sender may not use.
 */
export function respond(msg: Pick<Msg, "respond" | "reply">, data: Uint8Array): void {
  if (!INBOX.test(msg.reply ?? "")) return;
  try {
    msg.respond(data);
  } catch (error) {
    if (!isOfClosing(error)) throw error;
  }
}

/** The user of this process lacks a permission for a request, for example one that the operator made for an earlier version. */
export function isForbidden(error: unknown): boolean {
  return error instanceof errors.RequestError && error.cause instanceof errors.PermissionViolationError;
}

/** Node's codes of certificate errors, such as DEPTH_ZERO_SELF_SIGNED_CERT and ERR_TLS_CERT_ALTNAME_INVALID. */
function isOfCertificates(error: unknown): error is Error & { code: string } {
  return error instanceof Error && "code" in error && typeof error.code === "string" && /CERT|^UNABLE_TO_|^ERR_TLS_/.test(error.code);
}

function isOfClosing(error: unknown): boolean {
  return error instanceof errors.DrainingConnectionError || error instanceof errors.ClosedConnectionError;
}

const DRAIN_MS_MAX = 5_000;

/** Delivers pending messages and closes the connection. Without a connection, nothing can be delivered. */
export async function closeNats(nats: NatsConnection): Promise<void> {
  let giveUp: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (giveUp = setTimeout(resolve, DRAIN_MS_MAX)));
  const drained = nats.drain().catch(() => {}); // Draining is refused without a connection.
  await Promise.race([drained, late]);
  clearTimeout(giveUp);
  await nats.close();
}

/**
 * For a callback of a subscription: an exception is a programming error and ends the process. Without this, nats.js
 * would end its reader and keep a connection that receives nothing.
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

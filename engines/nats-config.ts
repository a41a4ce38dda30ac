/** Builds the text of a local nats-server's configuration file. `nats-server.ts` writes the file. */

import type { NatsPermissions } from "../shared/bus/permissions.ts";

export type NatsCluster = {
  readonly name: string;
  readonly port: number;
  /** `nats-route://host:port` of every member, which may include the member itself. */
  readonly routes: readonly string[];
  /**
   * Members connect only over `routes`, and clients only at the configured addresses. The server announces no other
   * address.
   */
  readonly unadvertised?: boolean;
};

/**
 * A user that the server accepts. `nkey`: the public key of a user who signs. `fromEnvironment`: the server reads the
 * password from this environment variable. Without `permissions` the user may do everything.
 */
type NatsUser =
  | { readonly user: string; readonly password: string | { readonly fromEnvironment: string }; readonly permissions?: NatsPermissions }
  | { readonly nkey: string };
/** The only users that the server accepts. The first one has a password, and may use JetStream and `_INBOX`. */
export type NatsUsers = readonly NatsUser[];

/** PEM files. Clients may use TLS or not. `clientsCaFile`: the CA that must sign the certificates of TLS clients. */
export type NatsTls = { readonly certFile: string; readonly keyFile: string; readonly clientsCaFile?: string | undefined };

export type NatsConfig = {
  readonly serverName: string;
  readonly host: string;
  readonly port: number;
  readonly storeDir: string;
  readonly monitorPort?: number | undefined;
  /** fsync before every acknowledgement: survives power loss, reduces throughput. */
  readonly syncAlways: boolean;
  readonly memoryBytesMax: number;
  readonly fileBytesMax: number;
  readonly tags: readonly string[];
  readonly cluster?: NatsCluster | undefined;
  readonly users?: NatsUsers | undefined;
  readonly tls?: NatsTls | undefined;
};

/** A snapshot or a long edit must fit into one message. nats-server warns above 8 MB. */
const PAYLOAD_BYTES_MAX = 8 * 1024 * 1024;

/** JetStream places replicas on members with different tags of this prefix: `az:1`, `az:2`. */
const ZONE_TAG = "az:";

/** No server listens there, so an announced address does not bypass the given routes. */
const NOWHERE = "127.0.0.1:9";

export function natsConfigText(config: NatsConfig): string {
  const lines = [
    `server_name: ${JSON.stringify(config.serverName)}`,
    `listen: ${JSON.stringify(`${config.host}:${config.port}`)}`,
    ...(config.monitorPort === undefined ? [] : [`http: ${JSON.stringify(`${config.host}:${config.monitorPort}`)}`]),
    ...(config.tags.length === 0 ? [] : [`server_tags: ${JSON.stringify(config.tags)}`]),
    `max_payload: ${PAYLOAD_BYTES_MAX}`,
    `write_deadline: "10s"`,
    "jetstream {",
    `  store_dir: ${JSON.stringify(config.storeDir)}`,
    // Explicit, because the default depends on the free disk space and can become 0.
    `  max_memory_store: ${config.memoryBytesMax}`,
    `  max_file_store: ${config.fileBytesMax}`,
    ...(config.syncAlways ? ["  sync_interval: always"] : []),
    ...(config.cluster === undefined ? [] : [`  unique_tag: ${JSON.stringify(ZONE_TAG)}`]),
    "}",
    ...(config.cluster === undefined ? [] : clusterLines(config.cluster, config.host)),
    ...(config.users === undefined ? [] : natsUserLines(config.users)),
    ...(config.tls === undefined ? [] : tlsLines(config.tls)),
  ];
  return `${lines.join("\n")}\n`;
}

function clusterLines(cluster: NatsCluster, host: string): readonly string[] {
  return [
    "cluster {",
    `  name: ${JSON.stringify(cluster.name)}`,
    `  listen: ${JSON.stringify(`${host}:${cluster.port}`)}`,
    `  routes: ${JSON.stringify(cluster.routes)}`,
    ...(cluster.unadvertised === true ? ["  no_advertise: true", `  advertise: ${JSON.stringify(NOWHERE)}`] : []),
    "}",
  ];
}

function tlsLines({ certFile, keyFile, clientsCaFile }: NatsTls): readonly string[] {
  const verified = clientsCaFile === undefined ? "" : `, ca_file: ${JSON.stringify(clientsCaFile)}, verify: true`;
  return ["allow_non_tls: true", `tls { cert_file: ${JSON.stringify(certFile)}, key_file: ${JSON.stringify(keyFile)}${verified} }`];
}

/** The section of a configuration file that names the users. */
export function natsUserLines(users: NatsUsers): readonly string[] {
  return ["authorization {", "  users: [", ...users.flatMap(userLines), "  ]", "}"];
}

function userLines(user: NatsUser): readonly string[] {
  if ("nkey" in user) return [`    { nkey: ${JSON.stringify(user.nkey)} }`];
  const password = typeof user.password === "string" ? JSON.stringify(user.password) : `$${user.password.fromEnvironment}`;
  const head = `user: ${JSON.stringify(user.user)}, password: ${password}`;
  if (user.permissions === undefined) return [`    { ${head} }`];
  const listed = (name: string, subjects: readonly string[]): string[] => [
    `        ${name}: [`,
    ...subjects.map((subject) => `          ${JSON.stringify(subject)}`),
    "        ]",
  ];
  const { publish, subscribe } = user.permissions;
  return [`    { ${head}`, "      permissions: {", ...listed("publish", publish), ...listed("subscribe", subscribe), "      }", "    }"];
}

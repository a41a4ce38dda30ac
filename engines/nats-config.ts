/** The configuration file a local nats-server is started with. Pure text: the file is written elsewhere. */
export type NatsCluster = {
  readonly name: string;
  readonly port: number;
  /** `nats-route://host:port` of every member; naming oneself does no harm. */
  readonly routes: readonly string[];
  /** Members are reached only over `routes`, and clients only at the addresses that they were given: nobody is told others. */
  readonly unadvertised?: boolean;
};

/** Whom it lets in, and nobody else. `nkey`: the public key of one who signs. */
export type NatsUsers = { readonly user: string; readonly password: string; readonly nkey?: string };

/** PEM. Who asks for it is served over TLS, who does not, without. `clientsCaFile`: who signs the certificates that those over TLS are to show. */
export type NatsTls = { readonly certFile: string; readonly keyFile: string; readonly clientsCaFile?: string | undefined };

export type NatsConfig = {
  readonly serverName: string;
  readonly host: string;
  readonly port: number;
  readonly storeDir: string;
  readonly monitorPort?: number | undefined;
  /** fsync before every acknowledgement: survives power loss, costs throughput. */
  readonly syncAlways: boolean;
  readonly memoryBytesMax: number;
  readonly fileBytesMax: number;
  readonly tags: readonly string[];
  readonly cluster?: NatsCluster | undefined;
  readonly users?: NatsUsers | undefined;
  readonly tls?: NatsTls | undefined;
};

/** A snapshot or a long edit fits one message; past 8 MB nats-server itself warns. */
const PAYLOAD_BYTES_MAX = 8 * 1024 * 1024;

/** Copies of a stream go to members whose tags with this beginning differ: `az:1`, `az:2`. */
const ZONE_TAG = "az:";

/** Where nobody listens: a member told of another at this address does not get there past the given routes. */
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
    // Stated, because the default follows the free disk and shrinks to nothing on a full one.
    `  max_memory_store: ${config.memoryBytesMax}`,
    `  max_file_store: ${config.fileBytesMax}`,
    ...(config.syncAlways ? ["  sync_interval: always"] : []),
    ...(config.cluster === undefined ? [] : [`  unique_tag: ${JSON.stringify(ZONE_TAG)}`]),
    "}",
    ...(config.cluster === undefined ? [] : clusterLines(config.cluster, config.host)),
    ...(config.users === undefined ? [] : userLines(config.users)),
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

function userLines({ user, password, nkey }: NatsUsers): readonly string[] {
  return [
    "authorization {",
    `  users: [{ user: ${JSON.stringify(user)}, password: ${JSON.stringify(password)} }${nkey === undefined ? "" : `, { nkey: ${JSON.stringify(nkey)} }`}]`,
    "}",
  ];
}

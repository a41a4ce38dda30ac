/** The configuration file a local redis-server is started with. Pure text: the file is written elsewhere. */
export type RedisConfig = {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
};

/** Appended to a file and never evicted: a board is rebuilt from the log only where that file is lost. */
export function redisConfigText(config: RedisConfig): string {
  return [
    `bind ${config.host}`,
    `port ${config.port}`,
    "protected-mode yes",
    "daemonize no",
    `dir ${JSON.stringify(config.dataDir)}`,
    "appendonly yes",
    "appendfsync everysec",
    'save ""',
    "maxmemory-policy noeviction",
    "",
  ].join("\n");
}

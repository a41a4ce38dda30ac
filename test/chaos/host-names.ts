/**
 * Host names of the nats-servers that each process resolves by files of its own, in a mount namespace. A test can make all
 * names unknown to one process, as when its DNS fails. Linux only, and only where a process may make such a namespace.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { runProgram } from "../../engines/run-program.ts";
import type { ProcessName } from "../system/cluster.ts";

const PROBE_MS_MAX = 10_000;
/** Begins the given program where `$0` is /etc/hosts and `$1` is /etc/resolv.conf. */
const IN_NAMESPACE = 'mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"';
const LOCALHOST = "127.0.0.1 localhost\n";
/** Nothing listens there, so a question to DNS fails immediately, and none leaves this machine. */
const RESOLV_CONF = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";

export class HostNames {
  readonly #folder: string;
  readonly #servers: number;

  private constructor(folder: string, servers: number) {
    this.#folder = folder;
    this.#servers = servers;
    writeFileSync(this.#resolvConf, RESOLV_CONF);
  }

  /** `servers`: number of nats-servers. Undefined: this machine does not let a process have such files of its own. */
  static async create(servers: number): Promise<HostNames | undefined> {
    const names = new HostNames(mkdtempSync(join(tmpdir(), "coroom-hosts-")), servers);
    const [program, ...args] = names.launcherOf({ role: "placement", index: 0 });
    try {
      await runProgram(program, [...args, "getent", "hosts", nameOf(0)], { msMax: PROBE_MS_MAX });
      return names;
    } catch {
      names.remove();
      return undefined; // Any failure means that: no unshare, no permission, or another resolver.
    }
  }

  /** The program that starts another one with the process's own files. */
  readonly launcherOf = (process: ProcessName): readonly [string, ...string[]] => {
    this.#write(process, true);
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", IN_NAMESPACE, this.#hostsOf(process), this.#resolvConf];
  };

  /** `url`: the addresses of all nats-servers, in their order. */
  inUrl(url: string): string {
    return url
      .split(",")
      .map((address, server) => address.replace("127.0.0.1", nameOf(server)))
      .join(",");
  }

  /** The process resolves no name of a nats-server any more. Returns the repair function. */
  forget(process: ProcessName): () => void {
    this.#write(process, false);
    return () => this.#write(process, true);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  get #resolvConf(): string {
    return join(this.#folder, "resolv.conf");
  }

  #hostsOf({ role, index }: ProcessName): string {
    return join(this.#folder, `hosts-${role}-${index}`);
  }

  /** Writes into the same file, because the namespace shows this file and not its path. */
  #write(process: ProcessName, isKnown: boolean): void {
    const names = Array.from({ length: this.#servers }, (_, server) => `127.0.0.1 ${nameOf(server)}\n`);
    writeFileSync(this.#hostsOf(process), isKnown ? LOCALHOST + names.join("") : LOCALHOST);
  }
}

/** `.test` is reserved: no DNS knows it. */
function nameOf(server: number): string {
  return `nats-${server + 1}.test`;
}

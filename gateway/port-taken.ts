/** Why there is no gateway at a port: told where it listens, and before anything is started that it would need. */

import { StartError } from "../shared/start-error.ts";

export function portTaken({ host, port }: { readonly host: string; readonly port: number }): StartError {
  return new StartError(
    `port ${port} of ${host} cannot be listened on: another process has it, or the address is not this machine's; set COROOM_PORT or COROOM_HOST`,
  );
}

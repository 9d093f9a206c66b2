import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createKubeClient } from '../../kube/api-transport.ts';
import { apiAccess } from '../../kube/daemon-access.ts';
import { VERSION } from '../../runtime/config.ts';
import { createServingDaemon, type Daemon } from '../../runtime/daemon.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import type { ConsoleConfig, ConsoleLogger } from './config.ts';
import { createConsole } from './console.ts';
import { KINDS } from './kinds.ts';
import type { QuestionSources } from './questions.ts';

/** Connections to the API server: one for each watch and some for lists. */
const CONNECTIONS = Object.keys(KINDS).length + 3;

const insteadUse = (command: string) => ({
  why:
    'this console runs in the cluster with read permissions only. Run `plumbline console` on your machine, or ' +
    `\`plumbline ${command}\`, which use your own permissions`,
});

/** A port-forward would need permission for every port of every pod there, which a read-only page must not have. */
const sources: Omit<QuestionSources, 'histories'> = {
  ask: async () => insteadUse('explain'),
  askSwitch: async (node) => insteadUse(`ovs status ${node}`),
  askDrain: async (node) => insteadUse(`simulate --without ${node}`),
  askInterference: async (node) => insteadUse(`interference ${node}`),
  diagnose: async (kind, name) => insteadUse(`explain ${kind} ${name}`),
};

/** The console as a separate Deployment. @throws ConfigError without a usable kubeconfig or service account */
export async function createConsoleDaemon(config: ConsoleConfig, log: ConsoleLogger): Promise<Daemon> {
  const access = await apiAccess(config.kubeconfig);
  const client = createKubeClient(access, `plumbline-console/${VERSION}`, CONNECTIONS);
  const assets = join(dirname(realpathSync(process.argv[1] ?? '.')), 'console');
  const page = createConsole({ client, address: config.address, assets, ...sources, log });
  const daemon = createServingDaemon({
    server: page.server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady: () => page.missing,
    registry: createRegistry(),
    run: (signal) => page.run(signal),
    close: () => client.close(),
    log,
  });
  return {
    start: () => daemon.start(),
    async stop() {
      page.closeStreams();
      await daemon.stop();
    },
  };
}

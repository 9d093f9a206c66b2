import { launcherPodSchema, watchLaunchers } from '../../../node-agent/vm-pinning/launchers.ts';
import { tuneGarbageCollection } from '../../../runtime/daemon.ts';
import { silent } from '../../support/logger.ts';
import { NAMESPACE, PODS, type Victim } from '../victim.ts';

export const victim: Victim = {
  schemas: { [PODS]: launcherPodSchema },
  start(client, signal) {
    tuneGarbageCollection();
    const launchers = watchLaunchers({ client, nodeName: 'n', onChange: () => undefined, log: silent });
    void launchers.run(signal);
    const key = `${NAMESPACE}/launcher`;
    return { synced: () => launchers.synced, served: async () => launchers.items.get(key) !== undefined };
  },
};

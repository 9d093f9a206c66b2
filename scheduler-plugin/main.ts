import { SERVICE } from '../model/names.ts';
import { runDaemon, runMain, tuneGarbageCollection } from '../runtime/daemon.ts';
import { createLogger } from '../runtime/log.ts';
import { parseSchedulerPluginConfig } from './wiring/config.ts';
import { createSchedulerPlugin } from './wiring/daemon.ts';

void runMain(SERVICE, 'scheduler-plugin', async () => {
  tuneGarbageCollection();
  const config = parseSchedulerPluginConfig(process.argv.slice(2));
  const log = createLogger('scheduler-plugin', config.logLevel);
  await runDaemon(await createSchedulerPlugin(config, log), { log });
});

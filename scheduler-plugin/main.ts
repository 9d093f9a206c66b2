import { runDaemon, runMain } from '../runtime/daemon.ts';
import { createLogger } from '../runtime/log.ts';
import { parseSchedulerPluginConfig } from './config.ts';
import { createSchedulerPlugin } from './daemon.ts';

void runMain('plumbline-scheduler-plugin', async () => {
  const config = parseSchedulerPluginConfig(process.argv.slice(2));
  const log = createLogger('scheduler-plugin', config.logLevel);
  await runDaemon(createSchedulerPlugin(config, log), { log });
});

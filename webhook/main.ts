import { WEBHOOK } from '../model/names.ts';
import { runDaemon, runMain } from '../runtime/daemon.ts';
import { createLogger } from '../runtime/log.ts';
import { parseWebhookConfig, readNetworkContext } from './config.ts';
import { createWebhook } from './daemon.ts';

void runMain(WEBHOOK, 'webhook', async () => {
  const config = parseWebhookConfig(process.argv.slice(2));
  const log = createLogger('webhook', config.logLevel);
  await runDaemon(await createWebhook(config, await readNetworkContext(config.networkContext), log), { log });
});

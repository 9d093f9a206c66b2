import { runDaemon, runMain } from '../../runtime/daemon.ts';
import { createLogger } from '../../runtime/log.ts';
import { parseConsoleConfig } from './config.ts';
import { createConsoleDaemon } from './daemon.ts';

void runMain('plumbline-console', 'console', async () => {
  const config = parseConsoleConfig(process.argv.slice(2));
  const log = createLogger('console', config.logLevel);
  await runDaemon(await createConsoleDaemon(config, log), { log });
});

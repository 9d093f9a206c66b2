import { setFlagsFromString } from 'node:v8';
import { AGENT } from '../model/names.ts';
import { runDaemon, runMain, tuneGarbageCollection } from '../runtime/daemon.ts';
import { createLogger } from '../runtime/log.ts';
import { parseNodeAgentConfig } from './wiring/config.ts';

/** Maximum seconds for stopping; restoring the threads' CPU masks takes milliseconds. */
const STOP_DEADLINE_SECONDS = 10;

void runMain(AGENT, 'node-agent', async () => {
  tuneGarbageCollection();
  // Waking threads for a young generation of 1 MiB costs more system calls than the collection itself.
  setFlagsFromString('--no-parallel-scavenge');
  setFlagsFromString('--no-concurrent-array-buffer-sweeping');
  const config = parseNodeAgentConfig(process.argv.slice(2));
  const log = createLogger('node-agent', config.logLevel);
  if (process.platform !== 'linux') {
    log.warn({ platform: process.platform }, 'node agent needs Linux; nothing to do');
    return;
  }
  // Imported only on Linux: the agent's system calls are native code, which other systems may lack.
  const { createAgent } = await import('./wiring/agent.ts');
  await runDaemon(await createAgent(config, log, process.argv[1] ?? ''), { log, deadline: STOP_DEADLINE_SECONDS });
});

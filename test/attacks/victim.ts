import { setTimeout as sleep } from 'node:timers/promises';
import { createKubeClient } from '../../kube/client.ts';
import { unreadableObjects } from '../../runtime/metrics.ts';
import { VICTIMS } from './victims.ts';

/** The caches of a daemon in a process of their own: `victim.ts webhook http://127.0.0.1:8001`. Prints a JSON line. */
const [daemon = '', server = ''] = process.argv.slice(2);
const victim = VICTIMS[daemon];
if (victim === undefined) throw new Error(`${daemon}: no such daemon`);
const access = { server, requestOptions: () => ({}) };
const { user, system } = process.cpuUsage();
const { synced, served } = victim.start(createKubeClient(access, daemon), new AbortController().signal);
while (!synced()) await sleep(20);
const used = process.cpuUsage({ user, system });
const isServed = await served();
const { values } = await unreadableObjects.get();
const unreadable = values.reduce((sum, { value }) => sum + value, 0);
const residentBytes = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ cpuSeconds: (used.user + used.system) / 1e6, isServed, unreadable, residentBytes }));
process.exit(0);

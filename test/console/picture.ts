import { openBrowser, openPage } from './browser.ts';
import { consoleOf, waitingPod } from './fixture.ts';

/** `npx tsx test/console/picture.ts FILE`: draws the picture of docs/console.md anew, of an invented cluster. */
const [file = 'docs/console.png'] = process.argv.slice(2);
const SIZE = { width: 1200, height: 720 };

const under = await consoleOf({ invented: 48 });
const names = Array.from({ length: 48 }, (_, index) => `worker-${index}.east.example.internal`);
for (const [name, cpus] of [
  ['trader', 130],
  ['upf', 96],
] as const) {
  const pod = waitingPod(name, cpus, new Date(Date.now() - cpus * 20_000).toISOString());
  under.see(pod);
  under.filter(pod, names);
}
const voice = waitingPod('voice', 12);
under.see({ ...voice, spec: { ...voice.spec, nodeName: names[9]! } }, { phase: 'Pending' });
under.node(names[7]!, { dpu: 'False' });
const browser = await openBrowser();
const { page } = await openPage(browser, `${under.url}/#/nodes/${names[9]}`, { viewport: SIZE });
await page.locator('.owners').waitFor();
await page.screenshot({ path: file });
await browser.close();
await under.stop();

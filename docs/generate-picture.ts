import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openBrowser, openPage } from '../test/console/browser-stage.ts';
import { consoleOf } from '../test/console/fixture.ts';
import { dressed, SWITCH_NODE, WITH_DPU } from '../test/console/scene-fixture.ts';

/**
 * `npx tsx docs/generate-picture.ts [FOLDER]`: creates the pictures of docs/reference/console.md again, from a generated
 * cluster: the pages of an operator at three widths, light and dark.
 */
const [folder = 'docs'] = process.argv.slice(2);
const HEIGHTS: Readonly<Record<number, number>> = { 390: 844, 768: 1024, 1280: 760, 1920: 1000 };
const SHOTS = [
  { name: 'console', hash: `#/nodes/${SWITCH_NODE}`, sizes: [1280], schemes: ['light'] },
  { name: 'console/nodes', hash: '#/nodes', sizes: [390, 768, 1920], schemes: ['light', 'dark'] },
  { name: 'console/node', hash: `#/nodes/${SWITCH_NODE}`, sizes: [390, 768, 1920], schemes: ['light', 'dark'] },
  { name: 'console/dpu', hash: `#/nodes/${WITH_DPU}`, sizes: [390, 1920], schemes: ['light', 'dark'] },
  { name: 'console/vms', hash: '#/vms', sizes: [390, 768, 1920], schemes: ['light', 'dark'] },
  { name: 'console/waiting', hash: '#/waiting/east/upf', sizes: [390, 768, 1920], schemes: ['light', 'dark'] },
] as const;

mkdirSync(join(folder, 'console'), { recursive: true });
const under = await dressed(consoleOf, Date.now() - 3 * 3600_000);
const browser = await openBrowser();
for (const { name, hash, sizes, schemes } of SHOTS) {
  for (const width of sizes) {
    for (const colorScheme of schemes) {
      const viewport = { width, height: HEIGHTS[width]! };
      const { page } = await openPage(browser, `${under.url}/${hash}`, { viewport, colorScheme });
      if (hash.includes('worker')) await page.locator('.history .entries li, .history .about').first().waitFor();
      const file = join(folder, `${name}${name === 'console' ? '' : `-${width}-${colorScheme}`}.png`);
      writeFileSync(file, await page.screenshot());
      console.log(file);
      await page.context().close();
    }
  }
}
await browser.close();
await under.stop();

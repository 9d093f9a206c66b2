import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openBrowser, openPage } from '../console/browser-stage.ts';
import { buildOnce, dist } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';

describe('the console in the demo', function () {
  needs('linux');
  needs('chromium');
  this.timeout(300_000);
  before(() => buildOnce());

  it('shows the real extender’s data: a VM near its network with its padding, and why another one waits', async () => {
    const demo = spawn(process.execPath, [join(dist, 'plumbline.mjs'), 'demo', '--console'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<number | null>((resolve) => demo.once('exit', resolve));
    const browser = await openBrowser();
    try {
      let url: string | undefined;
      for await (const line of createInterface({ input: demo.stdout })) {
        url = /console: (http:\S+\/)/.exec(line)?.[1];
        if (url !== undefined) break;
      }
      assert.ok(url, 'the demo printed no address of a console');
      const { page, complaints } = await openPage(browser, `${url}#/nodes/numa1`);
      const owner = page.locator('.owners tbody tr', { hasText: 'demo/forwarder' });
      await owner.waitFor();
      assert.match(await owner.innerText(), /1 added for whole cores: CPU \d+/);
      await page.locator('.cpu-cell', { hasText: 'NUMA node 1' }).getByText('physnet1').waitFor();
      await page.getByRole('link', { name: /Waiting/ }).click();
      await page.getByRole('row', { name: /firewall/ }).click();
      await page.locator('.groups').getByText('no room on the NUMA nodes of a required network').waitFor();
      await page.locator('.groups').getByText('physnet physnet1 is not on the node').waitFor();
      assert.deepEqual(complaints, []);
    } finally {
      await browser.close();
      demo.kill('SIGINT');
    }
    assert.equal(await ended, 0);
  });
});

import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { needs } from '../support/parts.ts';
import { useBrowser } from './browser-stage.ts';
import { type ConsoleUnderTest, consoleOf, waitingPod } from './fixture.ts';
import { CONTROL_PLANE, dressed, SILENT_NODE, WITH_DPU } from './scene-fixture.ts';

const NODES = 501;
const VMS = 1657;
const LISTS = ['nodes', 'vms', 'waiting'] as const;
const WAITING = 300;

const rowNames = (page: Page) => page.locator('.grid-body .row .cell-name .name').allTextContents();

async function largeCluster(): Promise<ConsoleUnderTest> {
  const under = await consoleOf({ invented: NODES - 1 });
  under.node(CONTROL_PLANE, { isControlPlane: true });
  for (let index = 0; index < WAITING; index++) under.see(waitingPod(`huge-${index}`, 130));
  return under;
}

describe('the lists in Chromium', function () {
  needs('chromium');
  this.timeout(300_000);
  const open = useBrowser();

  describe(`with ${NODES} nodes, ${VMS} VMs and ${WAITING} waiting`, () => {
    let under: ConsoleUnderTest;
    before(async () => {
      under = await largeCluster();
    });
    after(() => under?.stop());

    for (const viewport of [390, 768, 1280, 1920].map((width) => ({ width, height: width < 1000 ? 900 : 1000 }))) {
      const { width } = viewport;
      for (const list of LISTS) {
        it(`${list} at ${width} px: fewer than 1,000 elements, a State column, and counts that agree`, async () => {
          const { page } = await open(`${under.url}/#/${list}`, { viewport });
          const count = { nodes: NODES, vms: VMS, waiting: WAITING }[list];
          await page.locator(`[role=grid][aria-rowcount="${count + 1}"]`).waitFor();
          const elements = await page.evaluate<number>(`document.querySelectorAll('*').length`);
          assert.ok(elements < 1000, `${elements} elements`);
          assert.ok(await page.getByRole('columnheader', { name: 'State' }).isVisible());
          const states = page.locator('.grid-body .row').first().locator('.cell-problems .badge, .cell-verdict .badge');
          assert.ok(await states.first().isVisible());
          const box = await states.first().boundingBox();
          assert.ok(box !== null && box.x + box.width <= width, 'the state is on the screen');
          const counts = [
            await page.locator('.tabs a[aria-current=page] .count').first().innerText(),
            await page.locator('.filter option').first().innerText(),
          ].map((text) => Number(/[\d,]+/.exec(text)?.[0].replace(',', '')));
          assert.deepEqual(counts, [count, count]);
          assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= width);
          await page.getByRole('grid').focus();
          await page.keyboard.press('End');
          await page.locator(`[role=row][aria-rowindex="${count + 1}"].is-active`).waitFor();
        });
      }
    }

    it('finds waiting VMs by their name', async () => {
      const { page } = await open(`${under.url}/#/waiting`);
      await page.getByRole('searchbox', { name: 'Search waiting VMs and pods' }).fill('east/huge-29');
      await page.getByText(`11 of ${WAITING}`).waitFor();
      assert.match(page.url(), /#\/waiting\?q=east%2Fhuge-29$/);
    });
  });

  describe('with problems', () => {
    let under: ConsoleUnderTest;
    before(async () => {
      under = await dressed(consoleOf);
    });
    after(() => under?.stop());

    it('has them first; a silent agent with the age of its data, and no false error for a node without VMs', async () => {
      const { page } = await open(under.url);
      await page.locator('.badge.is-bad', { hasText: 'Agent silent' }).waitFor();
      await page.locator('.tile.is-attention', { hasText: 'Agent silent: 1' }).waitFor();
      assert.deepEqual((await rowNames(page)).slice(0, 2), [WITH_DPU, SILENT_NODE]);
      const silent = page.getByRole('row', { name: SILENT_NODE });
      assert.match(await silent.innerText(), /Agent silent\s+data: \d+ (s|min|h|d) old/);
      assert.equal(await silent.locator('svg.is-old').count(), 1);
      await page.getByRole('searchbox', { name: 'Search nodes' }).fill('control-plane');
      assert.match(await page.getByRole('row', { name: CONTROL_PLANE }).innerText(), /No VMs/);
      await page.goto(`${under.url}/#/nodes/${CONTROL_PLANE}`);
      await page.locator('.detail .facts').waitFor();
      assert.equal(await page.locator('.detail .problem, .detail .switch').count(), 0);
    });

    it('asks no agent for Open vSwitch on the host of a DPU', async () => {
      const { page } = await open(`${under.url}/#/nodes/${WITH_DPU}`);
      await page.locator('.history .entries li').first().waitFor();
      assert.doesNotMatch(await page.locator('.detail').innerText(), /Cannot reach the agent|Open vSwitch’s threads/);
    });

    for (const width of [390, 1920]) {
      it(`has every name in full at ${width} px, in the text or its tooltip`, async () => {
        const { page } = await open(under.url, { viewport: { width, height: 900 } });
        const hidden = await page.evaluate<string[]>(
          `[...document.querySelectorAll('.grid-body .name')]
            .filter((one) => one.scrollHeight > one.clientHeight + 1 && one.title !== one.textContent)
            .map((one) => one.textContent)`,
        );
        assert.deepEqual(hidden, []);
        const first = page.locator('.grid-body .name').first();
        assert.equal(await first.getAttribute('title'), WITH_DPU);
      });
    }
  });
});

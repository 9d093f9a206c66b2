import { computed, signal } from '@preact/signals';
import { route } from '../state/route.ts';

function matches(query: string) {
  const media = matchMedia(query);
  const result = signal(media.matches);
  media.addEventListener('change', (event) => {
    result.value = event.matches;
  });
  return result;
}

const isNarrow = matches('(width <= 900px)');
const isWide = matches('(width > 1500px)');

/** How much room a list has: `compact` shows an entry as a card with its state, `wide` has large CPU maps. */
export const layout = computed((): 'compact' | 'usual' | 'wide' => {
  const hasDetail = route.value.chosen !== undefined;
  if (isNarrow.value || (hasDetail && !isWide.value)) return 'compact';
  return isWide.value && !hasDetail ? 'wide' : 'usual';
});

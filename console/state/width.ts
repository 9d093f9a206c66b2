import { signal } from '@preact/signals';

const media = matchMedia('(width > 1500px)');

/** Whether there is room for large maps in the list. */
export const wide = signal(media.matches);
media.addEventListener('change', ({ matches }) => {
  wide.value = matches;
});

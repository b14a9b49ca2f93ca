// What a browser knows and the server does not: where the reader is, and what can be copied. Without it times are in UTC, and a text
// is copied by hand.
'use strict';

const two = (number) => String(number).padStart(2, '0');

// Shows times as they are where the reader is. The exact time is in the title.
window.localTimes = (root) => {
  for (const time of root.querySelectorAll('time[datetime]:not([title])')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime()) || !time.lastChild) continue;
    time.title = time.dateTime;
    time.lastChild.textContent = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  }
  for (const zone of root.querySelectorAll('.zone')) zone.textContent = 'local';
};

window.localTimes(document);

for (const button of document.querySelectorAll('button[data-copies]')) {
  button.hidden = !navigator.clipboard;
  button.addEventListener('click', async () => {
    const label = button.textContent;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).value);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}

"""Runs OpenStack's test/cors/main.py, unmodified, in headless Chromium: MAIN.PY ARGUMENTS….

main.py speaks to a Selenium older than 4.3, which today's Chromium has outlived, and starts browsers with a window and
without options. So it finds, under the names it knows, a Chrome with the old look-ups that starts as a machine without a
screen needs it.
"""

import runpy
import sys
import tempfile

import selenium.webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")
OriginalChrome = selenium.webdriver.Chrome


class Chrome(OriginalChrome):
    """Debian's Chromium on a profile of its own; ends as a whole when it is closed."""

    def __init__(self, options):
        for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp(prefix='chromium-')}"):
            options.add_argument(flag)
        options.binary_location = "/usr/bin/chromium"
        super().__init__(options=options, service=Service("/usr/bin/chromedriver"))

    def find_element_by_id(self, name):
        return self.find_element(By.ID, name)

    def close(self):
        self.quit()


def find_elements_by_xpath(element, path):
    return element.find_elements(By.XPATH, path)


if __name__ == "__main__":
    WebElement.find_elements_by_xpath = find_elements_by_xpath
    selenium.webdriver.Chrome, selenium.webdriver.ChromeOptions = Chrome, Options
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
